"""Tables of the world in simple words, written down by hand: uses of things, jobs, seasons, rhymes, tips, claims."""

USES = dict(
    line.split(":")
    for line in """a knife:cut things
a spoon:eat soup
a key:open a door
a pen:write
a pencil:write and draw
a clock:see what time it is
an umbrella:stay dry in the rain
a bed:sleep
a lamp:make light
a broom:clean the floor
a hammer:hit nails
a saw:cut wood
scissors:cut paper
a map:find the way
a phone:talk to people far away
a camera:take pictures
a cup:drink
a coat:stay warm
an oven:bake bread and cakes
a fridge:keep food cold
soap:wash your hands
a towel:dry yourself
a boat:travel on water
a bicycle:ride to other places
a car:drive to other places
a ladder:climb up to high places
a book:read
a computer:work, play and learn
a telescope:look at the stars
glasses:see better
a bag:carry things
a mirror:see yourself
a toothbrush:clean your teeth
a needle:sew clothes
a rope:tie things together
a tent:sleep outside
a thermometer:measure how warm it is
a ruler:measure how long something is
a candle:make light
money:buy things""".splitlines()
)
WORK = {
    "teacher": ("teaches children", "in a school"),
    "doctor": ("helps sick people", "in a hospital"),
    "baker": ("bakes bread and cakes", "in a bakery"),
    "farmer": ("grows food and looks after animals", "on a farm"),
    "nurse": ("takes care of sick people", "in a hospital"),
    "pilot": ("flies airplanes", "in the air"),
    "cook": ("makes food", "in a kitchen"),
    "painter": ("paints pictures or walls", "in a studio"),
    "firefighter": ("puts out fires", "at a fire station"),
    "librarian": ("looks after books", "in a library"),
    "police officer": ("keeps people safe", "in a town"),
    "gardener": ("takes care of plants", "in a garden"),
    "carpenter": ("makes things from wood", "in a workshop"),
    "tailor": ("makes clothes", "in a shop"),
    "dentist": ("takes care of teeth", "in a dental office"),
    "driver": ("drives a car, a bus or a truck", "on the road"),
    "sailor": ("works on a ship", "at sea"),
    "scientist": ("studies how the world works", "in a laboratory"),
    "mechanic": ("repairs cars and machines", "in a garage"),
    "writer": ("writes books and stories", "at a desk"),
    "programmer": ("writes programs for computers", "at a computer"),
    "astronaut": ("travels into space", "in a spaceship"),
    "vet": ("helps sick animals", "in an animal clinic"),
}
SEASONS = {
    "spring": "In spring it gets warmer, flowers bloom and birds sing.",
    "summer": "In summer it is warm, the days are long and many people go to the beach.",
    "autumn": "In autumn it gets cooler, leaves turn red and yellow, and they fall from the trees.",
    "winter": "In winter it is cold, the days are short and it can snow.",
}
BODY = {
    "eyes": "see",
    "ears": "hear",
    "nose": "smell",
    "mouth": "eat and speak",
    "legs": "walk and run",
    "hands": "hold things",
    "teeth": "bite and chew",
    "heart": "pump blood through your body",
    "brain": "think",
    "lungs": "breathe",
    "skin": "feel and protect your body",
    "tongue": "taste",
}
RHYMES = [
    group.split()
    for group in """cat hat bat mat rat
dog fog log frog
sun fun run bun
tree bee see free me
day play say way gray
night light bright right kite
house mouse
moon soon spoon noon
star car far jar
rain train brain chain
cake lake make snake
ball fall tall wall
king ring sing wing
book cook look hook
boat goat coat float
bear chair hair pear
sand hand land band
nose rose toes
snow grow low go
blue shoe true two""".splitlines()
]
TIPS = {
    "sleep": [
        "Go to bed at the same time every day.",
        "Keep your room dark and quiet.",
        "Do not look at a screen before bed.",
        "Drink no coffee in the evening.",
    ],
    "learning": [
        "Learn a little every day.",
        "Repeat what you learned.",
        "Take short breaks.",
        "Explain it to a friend.",
    ],
    "health": [
        "Eat fruit and vegetables.",
        "Drink enough water.",
        "Move every day.",
        "Sleep enough.",
        "Wash your hands.",
    ],
    "cooking": [
        "Use fresh food.",
        "Read the whole recipe first.",
        "Taste while you cook.",
        "Start with simple dishes.",
    ],
    "travel": [
        "Plan your trip early.",
        "Pack only what you need.",
        "Learn a few words of the language.",
        "Keep your passport safe.",
    ],
    "friendship": ["Listen well.", "Be honest.", "Keep your promises.", "Help when you can."],
    "the garden": ["Give the plants water.", "Pull out the weeds.", "Choose a sunny place.", "Start with easy plants."],
    "work": ["Make a list.", "Start with the most important thing.", "Take short breaks.", "Ask when you need help."],
    "reading": ["Read every day.", "Choose books you like.", "Find a quiet place.", "Talk about what you read."],
}
TRUE = [
    "The sun is a star.",
    "Ice is frozen water.",
    "A week has seven days.",
    "Paris is the capital of France.",
    "Bees make honey.",
    "A whale is a mammal.",
    "Snow is white.",
    "Two plus two is four.",
    "A triangle has three sides.",
    "Fish breathe with gills.",
    "The Earth goes around the sun.",
    "Cows eat grass.",
]
FALSE = {
    "The moon is made of cheese.": "The moon is made of rock.",
    "Fish can walk.": "Fish live in water and swim.",
    "The sun is cold.": "The sun is very hot.",
    "A week has ten days.": "A week has seven days.",
    "Snow is black.": "Snow is white.",
    "Two plus two is five.": "Two plus two is four.",
    "Elephants can fly.": "Elephants cannot fly.",
    "A square has five sides.": "A square has four sides.",
    "Bees make milk.": "Bees make honey.",
    "London is the capital of France.": "Paris is the capital of France.",
    "The sun goes around the Earth.": "The Earth goes around the sun.",
    "A spider has six legs.": "A spider has eight legs.",
    "Penguins can fly.": "Penguins cannot fly, but they swim very well.",
    "Water is dry.": "Water is wet.",
}
PAIRS = {
    "a cat and a dog": "A cat meows and likes to be alone. A dog barks and likes company.",
    "the sun and the moon": "The sun is a star that shines. The moon is a ball of rock that goes around the Earth.",
    "a lake and a river": "A lake stays in one place. A river flows.",
    "summer and winter": "Summer is warm and winter is cold.",
    "a fruit and a vegetable": (
        "A fruit grows from a flower and has seeds. A vegetable is another part of a plant, such as the "
        "root or the leaf."
    ),
    "a frog and a fish": "A frog has legs and can live on land. A fish has fins and lives in water.",
    "day and night": "During the day the sun shines. At night it is dark.",
    "a car and a bicycle": (
        "A car has four wheels and a motor. A bicycle has two wheels, and you move it with your feet."
    ),
    "a book and a movie": "You read a book, and you watch a movie.",
    "GET and POST": "GET asks for data. POST sends data in the body of the request.",
    "/api/generate and /api/chat": "/api/generate completes one prompt. /api/chat takes a list of messages.",
}
