"""The plots of the stories: openings, ten plots of about ten beats, and for each beat the ways to say it.

A plot is (its summary, its beats); a beat is a list of alternatives, one of which is taken. Slots in braces come
from the cast.
"""

OPENINGS = [
    "Once upon a time, there was {a_adj} {kind} named {name}.",
    "Once upon a time, there lived {a_adj} {kind} named {name}.",
    "There once was {a_adj} {kind} named {name}.",
    "{name} was {a_adj} {kind}.",
    "{name} was {a_adj} {kind} who lived near the {place}.",
]
HOMES = [
    "{He} lived in a small house by the {place}.",
    "{He} loved to play near the {place}.",
    "{name} liked {food} more than anything.",
    "{He} had a good friend named {friend}.",
]
PLOTS = {
    "lost": (
        "{name} loses {his} {toy}",
        [
            ["{name} had {a_colour} {toy} that {he} loved very much.", "{His} favorite thing was {a_colour} {toy}."],
            ["One day, the {toy} was gone.", "One morning, {name} could not find the {toy}."],
            [
                "{He} looked under the bed, but it was not there.",
                "{He} looked behind the door and under the table, but it was not there.",
            ],
            ["{name} felt very sad.", "{name} sat down and began to cry."],
            ['"What is wrong?" asked {friend}.', '{friend} came and asked, "Why are you sad?"'],
            ['"I lost my {toy}," said {name}.', '"My {toy} is gone," said {name}.'],
            ['"I will help you," said {friend}.', '"Let us look for it together," said {friend}.'],
            ["They looked all around the {place}.", "They walked to the {place} and looked everywhere."],
            [
                "At last, {friend} saw something {colour} behind a big tree.",
                "Then {friend} saw something {colour} in the tall grass.",
            ],
            ["It was the {toy}!", '"Here it is!" said {friend}.'],
            ["{name} was so happy that {he} hugged {friend}.", '"Thank you, {friend}!" said {name} with a big smile.'],
            ["From that day on, they were best friends.", "From then on, {name} always took good care of the {toy}."],
        ],
    ),
    "share": (
        "{name} learns to share",
        [
            [
                "One sunny day, {name} went to the {place} with {a_colour} {toy}.",
                "{name} had {a_colour} {toy} and played with it every day.",
            ],
            ['{friend} came and asked, "Can I play too?"', '{friend} saw the {toy} and said, "May I play with it?"'],
            ['"No, it is mine," said {name}.', '{name} held the {toy} tight and said, "No."'],
            ["{friend} was sad and went away.", "{friend} looked down and walked away slowly."],
            ["Soon {name} felt lonely.", "It was not much fun to play alone."],
            ["{name} thought about it for a long time.", "{name} asked {relative} what to do."],
            ["Then {he} ran after {friend}.", "Then {he} went to find {friend}."],
            [
                '"I am sorry," said {name}. "Let us play together."',
                '"I was not kind," said {name}. "You can play with the {toy} too."',
            ],
            [
                "{friend} smiled, and they played until the sun went down.",
                "They played with the {toy} all day and laughed a lot.",
            ],
            [
                "{name} learned that sharing makes everything more fun.",
                "That day {name} learned that it is good to share.",
            ],
        ],
    ),
    "rescue": (
        "{name} helps {a_animal}",
        [
            ["One day, {name} went for a walk in the {place}.", "One afternoon, {name} was walking near the {place}."],
            ["{He} heard a small sound.", 'Suddenly {he} heard a tiny voice. "Help!" it said.'],
            ["It was {a_animal} that was stuck in a bush.", "Behind a rock sat {a_animal} with a hurt leg."],
            ["The {animal} looked scared.", "The {animal} was cold and afraid."],
            ['"Do not be afraid," said {name}. "I will help you."', '"I will take care of you," said {name} softly.'],
            ["{name} was very gentle and helped the {animal}.", "Slowly and carefully, {name} picked up the {animal}."],
            ["{He} gave it some water and some {food}.", "{He} gave the {animal} a warm bed and some {food}."],
            ["After a few days, the {animal} was well again.", "Soon the {animal} felt much better."],
            ['"Thank you," said the {animal}. "You are very kind."', "The {animal} jumped up and down with joy."],
            [
                "They became good friends and played together every day.",
                "From that day on, the {animal} came to visit {name} every morning.",
            ],
        ],
    ),
    "learn": (
        "{name} learns to {skill}",
        [
            ["{name} wanted to learn to {skill}.", "More than anything, {name} wanted to {skill}."],
            ["The first time, {he} could not do it.", "{He} tried, but it did not work."],
            ['"It is too hard," said {name}.', '"I will never be able to {skill}," {he} said.'],
            [
                '{friend} said, "Do not give up. Try again."',
                '"You can do it," said {friend}. "Just try a little every day."',
            ],
            ["So {name} tried again the next day.", "So every day, {name} tried again."],
            ["It was still hard, but a little better.", "Sometimes {he} made mistakes, but {he} kept going."],
            ["After one week, something wonderful happened.", "Then one day, it worked."],
            ["{name} could {skill}!", '"Look!" said {name}. "I can {skill}!"'],
            ["{friend} clapped and cheered.", "{friend} was very proud of {him}."],
            [
                "{name} learned that you can do hard things if you keep trying.",
                "That night, {name} went to bed with a big smile.",
            ],
        ],
    ),
    "garden": (
        "{name} grows a plant",
        [
            ["One spring day, {relative} gave {name} a tiny seed.", "One day, {name} found a tiny seed."],
            ['"What will it be?" asked {name}.', "{name} wondered what it would be."],
            ["{He} put the seed in the ground near the {place}.", "{name} dug a small hole and put the seed in it."],
            ["Every day, {he} gave it some water.", "{name} gave it water and waited."],
            ["For many days, nothing happened.", "The first week, {he} could see nothing."],
            ['"You must wait," said {friend}.', '"Good things take time," said {friend}.'],
            ["Then one morning, there was a little green leaf.", "Then a small green plant came up."],
            ["The plant grew and grew.", "It grew taller every day."],
            ["In summer, it had {a_colour} flower.", "At last there was a big {colour} flower on top."],
            ["{name} was very proud and showed it to everyone.", "{name} and {friend} sat next to it and were happy."],
        ],
    ),
    "rain": (
        "{name} has fun on a rainy day",
        [
            ["One day, it rained and rained.", "{name} woke up and saw gray clouds in the sky."],
            [
                '"Now I cannot go to the {place}," said {name}.',
                "{name} wanted to go to the {place}, but it was too wet.",
            ],
            ["{He} looked out of the window and felt sad.", "{name} did not know what to do."],
            ['"I have an idea," said {relative}.', 'Then {relative} said, "Let us make our own fun."'],
            ["They took some chairs and a big blanket.", "They found an old box and some {colour} paint."],
            ["Together they made a little house.", "They made a boat and sailed across the room."],
            ["{friend} came over, and they ate {food} inside.", "They told stories and ate {food}."],
            ["They laughed so much that they forgot about the rain.", "It was warm and cozy."],
            [
                "When the rain stopped, there was a rainbow in the sky.",
                "Later the sun came out, but {name} wanted to stay inside.",
            ],
            ['"This was the best day," said {name}.', "{name} learned that a rainy day can be a good day too."],
        ],
    ),
    "cook": (
        "{name} makes {food} for {friend}",
        [
            ["It was the birthday of {friend}.", "One day, {friend} was sick and had to stay in bed."],
            ["{name} wanted to do something nice.", '"I want to make {friend} happy," said {name}.'],
            ["{He} decided to make {food}.", "So {name} went to the kitchen to make {food}."],
            ["{relative} helped {him}.", '"Can you help me?" {name} asked {relative}.'],
            ["They mixed and stirred and tasted.", "They worked all morning."],
            ["Oh no! Some of it fell on the floor.", "There was a big mess in the kitchen."],
            ["But {name} did not give up and started again.", "{name} cleaned it up and tried again."],
            ["At last the {food} smelled wonderful.", "Soon the whole house smelled good."],
            ["{name} took the {food} to {friend}.", "{name} put it in a basket and walked to the house of {friend}."],
            ['"This is for me? Thank you!" said {friend}.', "{friend} was so happy and said it was delicious."],
            ["They ate together and had a lovely day.", "{name} learned that giving makes you happy."],
        ],
    ),
    "dark": (
        "{name} is afraid of the dark",
        [
            ["{name} was afraid of the dark.", "Every night, {name} was scared when the light went out."],
            ["One night, there was a strange sound.", "One night, {he} heard a sound outside."],
            ['"What was that?" {name} whispered.', "{name} hid under the blanket."],
            ["Then {relative} came in with a small lamp.", "{name} called, and {relative} came in."],
            ['"Let us look together," said {relative}.', '"Do not worry," said {relative}. "I am here."'],
            ["They opened the window and looked out.", "Slowly they went to the window."],
            ["It was only {a_animal}!", "There sat {a_animal}, looking at the moon."],
            ["The {animal} said hello, and {name} began to laugh.", "{name} laughed and waved at the {animal}."],
            ["The sky was full of bright stars.", "{name} saw how beautiful the stars were."],
            ["After that, {name} was not afraid of the dark anymore.", "From that night on, {name} slept very well."],
        ],
    ),
    "friend": (
        "{name} makes a new friend",
        [
            ["{name} was new in town and had no friends yet.", "{name} often felt lonely."],
            ["One day, {he} went to the {place}.", "One morning, {he} took {his} {toy} and went to the {place}."],
            ["There {he} saw {a_animal} sitting all alone.", "Under a tree sat {a_animal}."],
            ['"Hello, my name is {name}," {he} said.', '"Would you like to play?" asked {name}.'],
            ["The {animal} was shy and did not say anything.", "At first, the {animal} hid behind a tree."],
            ["So {name} sat down and shared {his} {food}.", "{name} smiled and gave the {animal} some {food}."],
            ['"Thank you," said the {animal}. "I like {food} too."', "The {animal} came closer and smiled."],
            [
                "Then they played with the {toy} and ran through the {place}.",
                "They played until it was time to go home.",
            ],
            ['"Will you come back tomorrow?" asked the {animal}.', '"See you tomorrow," said {name}.'],
            ["Now {name} was not lonely anymore.", "They met every day and became best friends."],
        ],
    ),
    "treasure": (
        "{name} finds a treasure",
        [
            ["One day, {name} found an old map.", "One day, {relative} gave {name} an old map."],
            ['"It shows a treasure!" said {name}.', "There was a big red cross on it."],
            ["{He} asked {friend} to come along.", '"Let us go and find it," said {friend}.'],
            ["They walked past the {place} and over a small bridge.", "They climbed a hill and crossed the {place}."],
            ["It was a long way, and they got tired.", "On the way, they met {a_animal} who showed them the path."],
            ["At last they came to a big tree.", "Then they saw the place from the map."],
            ["They dug and dug.", "They began to dig in the ground."],
            ["There was an old box! They opened it slowly.", "Soon they found {a_colour} box and opened it."],
            [
                "Inside was {a_colour2} {toy} and a letter.",
                "Inside there was no gold, but a letter and {a_colour2} {toy}.",
            ],
            [
                'The letter said, "The real treasure is a good friend."',
                'In the letter it said, "Share this with someone you love."',
            ],
            ["{name} and {friend} looked at each other and smiled.", "They laughed and walked home hand in hand."],
        ],
    ),
}
SKILLS = [
    "swim",
    "ride a bike",
    "fly a kite",
    "sing",
    "dance",
    "draw",
    "read",
    "jump rope",
    "climb a tree",
    "skate",
    "whistle",
    "play the drum",
    "cook",
    "paint",
]
