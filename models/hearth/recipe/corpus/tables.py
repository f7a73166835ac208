"""Tables of small facts, written down by hand: what the fact makers know."""

from .words import COLOURS, join

CAPITALS = dict(
    line.split(":")
    for line in """France:Paris England:London Italy:Rome Germany:Berlin Spain:Madrid Japan:Tokyo
Norway:Oslo Austria:Vienna Portugal:Lisbon Ireland:Dublin Greece:Athens Egypt:Cairo India:New_Delhi Canada:Ottawa
Australia:Canberra Poland:Warsaw Finland:Helsinki Sweden:Stockholm Denmark:Copenhagen Belgium:Brussels Hungary:Budapest
Turkey:Ankara Russia:Moscow China:Beijing Thailand:Bangkok Kenya:Nairobi Peru:Lima Colombia:Bogota Brazil:Brasilia
Argentina:Buenos_Aires Chile:Santiago Mexico:Mexico_City Cuba:Havana Iceland:Reykjavik Switzerland:Bern Vietnam:Hanoi
Iran:Tehran Iraq:Baghdad Nepal:Kathmandu Morocco:Rabat Scotland:Edinburgh Romania:Bucharest Bulgaria:Sofia
Ukraine:Kyiv Croatia:Zagreb Serbia:Belgrade Indonesia:Jakarta Ghana:Accra""".split()
)
CAPITALS = {country: city.replace("_", " ") for country, city in CAPITALS.items()}
CAPITALS |= {
    "the United States": "Washington, D.C.",
    "the United Kingdom": "London",
    "the Netherlands": "Amsterdam",
    "South Korea": "Seoul",
    "New Zealand": "Wellington",
    "the Czech Republic": "Prague",
    "the Philippines": "Manila",
}
COUNTRIES = list(CAPITALS)
CONTINENTS = {
    "Europe": "France Italy Germany Spain Norway Austria Portugal Ireland Greece Poland Finland Sweden Denmark "
    "Belgium Hungary Iceland Switzerland Romania Bulgaria Croatia Serbia Ukraine England Scotland",
    "Asia": "Japan India China Thailand Vietnam Iran Iraq Nepal Indonesia",
    "Africa": "Egypt Kenya Morocco Ghana",
    "South America": "Peru Colombia Brazil Argentina Chile",
    "North America": "Canada Mexico Cuba",
}
LANGUAGES = {
    "France": "French",
    "England": "English",
    "Italy": "Italian",
    "Germany": "German",
    "Spain": "Spanish",
    "Japan": "Japanese",
    "Portugal": "Portuguese",
    "Brazil": "Portuguese",
    "Mexico": "Spanish",
    "China": "Chinese",
    "Russia": "Russian",
    "Poland": "Polish",
    "Greece": "Greek",
    "Sweden": "Swedish",
    "Turkey": "Turkish",
}

# animal: sound, young, home, food, kind, legs, size rank
ANIMALS = {
    row[0]: row[1:]
    for row in (
        line.split("|")
        for line in """dog|barks|puppy|a kennel|meat|mammal|4|5
cat|meows|kitten|a house|fish and meat|mammal|4|4
cow|moos|calf|a barn|grass|mammal|4|8
horse|neighs|foal|a stable|grass and hay|mammal|4|8
sheep|bleats|lamb|a meadow|grass|mammal|4|6
pig|oinks|piglet|a sty|many kinds of plants|mammal|4|6
duck|quacks|duckling|a pond|plants and small insects|bird|2|4
hen|clucks|chick|a coop|grain|bird|2|4
lion|roars|cub|the savanna|meat|mammal|4|7
tiger|roars|cub|the jungle|meat|mammal|4|7
bear|growls|cub|a den|berries, fish and honey|mammal|4|8
wolf|howls|pup|the forest|meat|mammal|4|6
frog|croaks|tadpole|a pond|insects|amphibian|4|2
bee|buzzes|larva|a hive|nectar|insect|6|1
mouse|squeaks|pup|a small hole|seeds and grain|mammal|4|2
owl|hoots|owlet|a tree|mice|bird|2|4
elephant|trumpets|calf|the savanna|grass and leaves|mammal|4|9
whale|sings|calf|the sea|tiny sea animals|mammal|0|10
spider|makes no sound|spiderling|a web|insects|arachnid|8|1
rabbit|makes almost no sound|kit|a burrow|grass and carrots|mammal|4|3
goat|bleats|kid|a farm|grass and leaves|mammal|4|6
snake|hisses|snakelet|a burrow|mice|reptile|0|4
ant|makes no sound|larva|an anthill|seeds and sugar|insect|6|1
penguin|calls loudly|chick|the cold south|fish|bird|2|5
kangaroo|makes soft clicks|joey|Australia|grass|mammal|4|6
fox|barks|cub|a den|mice and berries|mammal|4|4
giraffe|hums|calf|the savanna|leaves|mammal|4|9
shark|makes no sound|pup|the sea|fish|fish|0|8
eagle|screams|eaglet|a nest|small animals|bird|2|4
turtle|makes almost no sound|hatchling|the sea|plants|reptile|4|3""".splitlines()
    )
}
FLYERS, SWIMMERS = ["duck", "bee", "owl", "eagle"], ["duck", "frog", "whale", "penguin", "shark", "turtle"]
PLURAL = {"sheep": "sheep", "wolf": "wolves", "mouse": "mice", "fox": "foxes"}

COLOUR_OF = {
    "the sky": "blue",
    "grass": "green",
    "snow": "white",
    "a banana": "yellow",
    "a strawberry": "red",
    "an orange": "orange",
    "the sun": "yellow",
    "coal": "black",
    "a tomato": "red",
    "a lemon": "yellow",
    "milk": "white",
    "a carrot": "orange",
    "the sea": "blue",
    "a leaf in summer": "green",
    "chocolate": "brown",
    "a crow": "black",
    "a flamingo": "pink",
    "an elephant": "gray",
    "a fire engine": "red",
    "a polar bear": "white",
    "a cherry": "red",
    "a cucumber": "green",
    "the night sky": "black",
    "a swan": "white",
    "a frog": "green",
}
MIXES = {
    ("red", "yellow"): "orange",
    ("blue", "yellow"): "green",
    ("red", "blue"): "purple",
    ("red", "white"): "pink",
    ("black", "white"): "gray",
}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
]
NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
OPPOSITES = dict(
    pair.split("/")
    for pair in """big/small hot/cold up/down fast/slow old/young day/night happy/sad light/dark long/short
high/low
open/closed full/empty hard/soft wet/dry early/late near/far loud/quiet rich/poor strong/weak good/bad
black/white left/right in/out on/off first/last thick/thin clean/dirty heavy/light wide/narrow tall/short
new/old true/false push/pull start/stop win/lose buy/sell give/take love/hate north/south east/west
inside/outside above/below before/after always/never easy/difficult sweet/sour brave/afraid deep/shallow
sharp/blunt smooth/rough asleep/awake summer/winter laugh/cry friend/enemy front/back more/less top/bottom
right/wrong come/go""".split()
)
PLURALS = dict(
    pair.split("/")
    for pair in """cat/cats dog/dogs child/children mouse/mice foot/feet tooth/teeth man/men woman/women box/boxes
bus/buses
baby/babies city/cities leaf/leaves knife/knives wolf/wolves sheep/sheep fish/fish goose/geese person/people
potato/potatoes tomato/tomatoes berry/berries story/stories house/houses tree/trees glass/glasses
dish/dishes brush/brushes fox/foxes apple/apples book/books toy/toys key/keys day/days party/parties
country/countries shelf/shelves half/halves life/lives hero/heroes ox/oxen car/cars star/stars bird/birds
flower/flowers""".split()
)
PAST = dict(
    pair.split("/")
    for pair in """go/went eat/ate see/saw run/ran come/came give/gave take/took make/made find/found
think/thought buy/bought
bring/brought sing/sang swim/swam write/wrote read/read drink/drank fly/flew sleep/slept speak/spoke
know/knew begin/began walk/walked play/played jump/jumped help/helped look/looked stop/stopped cry/cried
try/tried have/had is/was say/said tell/told grow/grew fall/fell win/won lose/lost build/built""".split()
)
COUNTS = [
    ("days", "a week", "7"),
    ("months", "a year", "12"),
    ("minutes", "an hour", "60"),
    ("seconds", "a minute", "60"),
    ("hours", "a day", "24"),
    ("days", "a year", "365"),
    ("weeks", "a year", "52"),
    ("sides", "a triangle", "3"),
    ("sides", "a square", "4"),
    ("sides", "a pentagon", "5"),
    ("sides", "a hexagon", "6"),
    ("letters", "the English alphabet", "26"),
    ("seasons", "a year", "4"),
    ("eggs", "a dozen", "12"),
    ("centimeters", "a meter", "100"),
    ("meters", "a kilometer", "1000"),
    ("years", "a century", "100"),
    ("wheels", "a bicycle", "2"),
    ("wheels", "a car", "4"),
    ("fingers", "one hand", "5"),
    ("colors", "a rainbow", "7"),
    ("planets", "the solar system", "8"),
    ("cents", "a dollar", "100"),
    ("grams", "a kilogram", "1000"),
    ("bits", "a byte", "8"),
    ("continents", "the world", "7"),
]
DEFINITIONS = {
    "the sun": "The sun is a star. It gives the Earth light and warmth.",
    "the moon": "The moon is a ball of rock that goes around the Earth. It shines because sunlight falls on it.",
    "the Earth": "The Earth is the planet we live on. It goes around the sun once a year.",
    "rain": "Rain is water that falls from clouds in small drops.",
    "snow": "Snow is frozen water that falls from clouds as white flakes.",
    "a cloud": "A cloud is made of very many tiny drops of water that float in the air.",
    "a rainbow": "A rainbow is a band of colors in the sky. You see it when the sun shines through rain.",
    "wind": "Wind is air that moves.",
    "ice": "Ice is frozen water. Water freezes at 0 degrees Celsius.",
    "a river": "A river is a long stream of water that flows to a lake or to the sea.",
    "a mountain": "A mountain is a very high piece of land.",
    "an island": "An island is land with water all around it.",
    "a desert": "A desert is a very dry place where little rain falls.",
    "a volcano": "A volcano is a mountain that can throw out hot melted rock called lava.",
    "a tree": "A tree is a tall plant with roots, a trunk, branches and leaves.",
    "a seed": "A seed is the small part of a plant that a new plant can grow from.",
    "a robot": "A robot is a machine that can do jobs on its own or with little help.",
    "a computer": "A computer is a machine that follows instructions and works with information.",
    "the internet": "The internet is a worldwide network of computers that can talk to each other.",
    "a library": "A library is a place where you can read and borrow books.",
    "a school": "A school is a place where children learn.",
    "a hospital": "A hospital is a place where doctors and nurses help sick people.",
    "a dentist": "A dentist is a doctor who takes care of teeth.",
    "a baker": "A baker is a person who makes bread and cakes.",
    "a pilot": "A pilot is a person who flies an airplane.",
    "a farmer": "A farmer is a person who grows food and looks after animals.",
    "honey": "Honey is a sweet food that bees make from nectar.",
    "bread": "Bread is a food made from flour, water and yeast.",
    "cheese": "Cheese is a food made from milk.",
    "milk": "Milk is a white drink that comes from cows and other animals.",
    "water": "Water is a clear liquid. All living things need it.",
    "a magnet": "A magnet is a piece of metal that pulls iron toward it.",
    "a map": "A map is a drawing that shows where places are.",
    "a clock": "A clock is a tool that shows the time.",
    "a bicycle": "A bicycle is a vehicle with two wheels that you move with your feet.",
    "a friend": "A friend is someone you like and trust.",
    "music": "Music is sound made in a way that people enjoy.",
    "a planet": "A planet is a large round body that goes around a star.",
    "gravity": "Gravity is the force that pulls things toward the ground.",
    "a dinosaur": "Dinosaurs were animals that lived on Earth millions of years ago.",
    "a poem": "A poem is a short text with rhythm, and often with rhymes.",
    "a triangle": "A triangle is a shape with three sides.",
    "a circle": "A circle is a perfectly round shape.",
    "a language model": "A language model is a program that predicts the next piece of a text. I am one.",
    "a token": (
        "A token is a small piece of text, such as a word or part of a word. Language models read and write tokens."
    ),
    "an API": "An API is a way for programs to talk to each other.",
    "JSON": "JSON is a text format for data. It has objects, arrays, strings, numbers, true, false and null.",
    "HTTP": "HTTP is the set of rules that web browsers and servers use to talk to each other.",
    "a webhook": "A webhook is an HTTP request that one program sends to another when something happens.",
}
PEOPLE = {
    "Albert Einstein": "Albert Einstein was a famous scientist. He thought about space, time and light.",
    "Isaac Newton": "Isaac Newton was a famous scientist. He wrote about gravity and light.",
    "Marie Curie": "Marie Curie was a famous scientist. She discovered radium.",
    "William Shakespeare": "William Shakespeare was an English writer of plays and poems.",
    "Leonardo da Vinci": "Leonardo da Vinci was an Italian painter and inventor.",
    "Mozart": "Mozart was a composer from Austria.",
    "Beethoven": "Beethoven was a composer from Germany.",
    "Ada Lovelace": "Ada Lovelace wrote one of the first computer programs.",
    "Alan Turing": "Alan Turing was one of the fathers of computer science.",
    "Christopher Columbus": "Christopher Columbus was a sailor who crossed the Atlantic Ocean in 1492.",
    "Neil Armstrong": "Neil Armstrong was the first person on the moon.",
}
REASONS = {
    "Why is the sky blue?": "The sky is blue because the air scatters blue sunlight more than red sunlight.",
    "Why is grass green?": "Grass is green because it contains chlorophyll, a green substance that catches sunlight.",
    "Why do we sleep?": "We sleep so that the body and the brain can rest and grow.",
    "Why does it rain?": (
        "Water from the ground rises into the air and makes clouds. When the drops get heavy, they fall as rain."
    ),
    "Why do leaves fall in autumn?": (
        "In autumn there is less light, so trees drop their leaves to save water and energy."
    ),
    "Why do birds fly south?": "Many birds fly south in winter because it is warmer there and they find more food.",
    "Why is the sea salty?": "The sea is salty because rivers carry salt from rocks into it.",
    "Why does ice float?": "Ice floats because it is lighter than the same amount of water.",
    "Why do cats purr?": "Cats often purr because they are happy and calm.",
    "Why do we brush our teeth?": "We brush our teeth to keep them clean and healthy.",
    "Why do plants need sunlight?": "Plants need sunlight because they use it to make their food.",
    "Why is the sun hot?": "The sun is hot because atoms join together in its center and give off energy.",
    "Why do we have day and night?": "We have day and night because the Earth turns around once every 24 hours.",
    "Why do we have seasons?": "We have seasons because the Earth is tilted as it goes around the sun.",
    "Why do we eat?": "We eat because food gives us energy and helps us grow.",
    "Why do bees make honey?": "Bees make honey so that they have food in winter.",
    "Why do dogs bark?": "Dogs bark to warn others, to ask for something, or because they are excited.",
    "How do plants grow?": "Plants grow from seeds. They need water, air, soil and sunlight.",
    "How do birds fly?": "Birds fly by flapping their wings. Their bones are light and their feathers push the air.",
    "How do fish breathe?": "Fish breathe under water with gills.",
    "How do you make tea?": "Boil some water, pour it over the tea leaves, wait three minutes, and enjoy.",
    "How do you make a sandwich?": "Take two slices of bread, put cheese and tomato between them, and it is done.",
    "How do you plant a seed?": "Dig a small hole, put the seed in, cover it with soil, and give it water every day.",
    "How do you make new friends?": "Smile, say hello, ask a kind question, and listen well.",
    "How far away is the moon?": "The moon is about 384,000 kilometers away from the Earth.",
    "What do plants need to grow?": "Plants need water, air, soil and sunlight.",
    "What are the primary colors?": "The primary colors are red, yellow and blue.",
    "What are the seasons?": "The four seasons are spring, summer, autumn and winter.",
    "What are the colors of the rainbow?": (
        "The colors of the rainbow are red, orange, yellow, green, blue, indigo and violet."
    ),
    "What are the days of the week?": f"The days of the week are {join(DAYS)}.",
    "What are the months of the year?": f"The months of the year are {join(MONTHS)}.",
    "What are the five senses?": "The five senses are sight, hearing, smell, taste and touch.",
    "What are the planets?": "The planets are Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune.",
    "What is the biggest animal?": "The blue whale is the biggest animal in the world.",
    "What is the tallest animal?": "The giraffe is the tallest animal.",
    "What is the fastest land animal?": "The cheetah is the fastest land animal.",
    "What is the largest planet?": "Jupiter is the largest planet in the solar system.",
    "What is the largest ocean?": "The Pacific Ocean is the largest ocean.",
    "What is the highest mountain?": "Mount Everest is the highest mountain in the world.",
    "What is the closest star to Earth?": "The sun is the closest star to the Earth.",
    "At what temperature does water boil?": "Water boils at 100 degrees Celsius.",
    "At what temperature does water freeze?": "Water freezes at 0 degrees Celsius.",
    "What do bees make?": "Bees make honey.",
    "What do cows give us?": "Cows give us milk.",
    "Where does the sun rise?": "The sun rises in the east and sets in the west.",
    "Who wrote Romeo and Juliet?": "William Shakespeare wrote Romeo and Juliet.",
    "Who painted the Mona Lisa?": "Leonardo da Vinci painted the Mona Lisa.",
}
KINDS = {
    "fruit": "apple banana pear orange lemon cherry plum grape peach mango".split(),
    "vegetable": "carrot potato onion pea bean cabbage spinach pepper cucumber turnip".split(),
    "tool": "hammer saw drill wrench shovel rake".split(),
    "vehicle": "car bus train bicycle truck boat airplane".split(),
    "musical instrument": "piano guitar violin drum flute trumpet".split(),
    "piece of clothing": "shirt hat coat sock dress scarf".split(),
    "flower": "rose tulip daisy lily sunflower violet".split(),
    "animal": "dog cat horse cow lion tiger bear rabbit fox wolf".split(),
    "bird": "owl eagle duck robin crow swan".split(),
    "color": COLOURS,
}
