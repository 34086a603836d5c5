"""Phrases of the training corpus: what reviews, requests and headlines say, and what suits a character's role."""

from rtlang.model.embedded.words import ANIMALS, CITIES, COLORS, FIRST_NAMES, HOBBIES, INGREDIENTS, ITEMS, JOBS, words

OPINIONS = {
    "positive": words(
        "I love it|it works great|the quality is excellent|I am very happy|best purchase this year|"
        "it arrived early and looks beautiful|my family enjoys it|highly recommended|"
        "it is comfortable and strong|the staff was kind|a wonderful film|the food was delicious|great service|"
        "I would buy it again|it made me smile|simply perfect|amazing value",
        "|",
    ),
    "negative": words(
        "I hate it|it broke after a day|the quality is terrible|I am very disappointed|a waste of money|"
        "it arrived late and damaged|it is too noisy|I want a refund|it feels cheap and weak|the staff was rude|"
        "a boring film|the food was cold|awful service|I would not buy it again|it made me angry|simply bad|"
        "the worst I have seen",
        "|",
    ),
    "neutral": words(
        "it is okay|it does the job|nothing special|it is average|it is what I expected|not good and not bad|"
        "it is fine for the price|I have no strong opinion|it is neither good nor bad",
        "|",
    ),
}
INTENTS = {
    "billing": words(
        "I was charged twice|my invoice is wrong|how do I pay my bill|there is an extra fee on my card|"
        "I need a receipt for my payment",
        "|",
    ),
    "shipping": words(
        "my package has not arrived|where is my order|can you deliver faster|the tracking number does not work|"
        "please change the delivery address",
        "|",
    ),
    "returns": words(
        "I want to send it back|how do I return this item|I need a refund for a broken item|"
        "can I exchange it for another size|the wrong item came",
        "|",
    ),
    "technical": words(
        "the app crashes|the screen stays black|I cannot connect to the network|"
        "it shows an error when I start it|the update failed",
        "|",
    ),
    "account": words(
        "I forgot my password|how do I change my email|please delete my profile|I cannot log in|"
        "I want to update my user name",
        "|",
    ),
}
TOPICS = {
    "sports": words(
        "the team won the match|she scored two goals|the race starts at noon|he trained for the marathon|"
        "the coach was proud",
        "|",
    ),
    "food": words(
        "the soup needs more salt|bake the bread for an hour|the pasta was delicious|add two eggs and some milk|"
        "the cook used fresh basil",
        "|",
    ),
    "music": words(
        "the band played a new song|she tuned her guitar|the choir sang softly|he wrote a tune for the flute|"
        "the drums were loud",
        "|",
    ),
    "travel": words(
        "the train leaves at nine|we booked a hotel by the sea|her flight was delayed|they packed their bags|"
        "the border was open",
        "|",
    ),
    "weather": words(
        "it rained all day|the wind is strong tonight|snow fell on the hills|the sun came out|a storm is coming",
        "|",
    ),
    "money": words(
        "the bank raised the rate|he paid his rent|prices went up again|she saved ten dollars|the loan was approved",
        "|",
    ),
}
TIPS = {
    "sleeping": words(
        "go to bed at the same time|keep the room dark|drink no coffee in the evening|read a book before bed",
        "|",
    ),
    "studying": words(
        "take short breaks|make a plan for the day|explain it to a friend|sleep well before the test",
        "|",
    ),
    "cooking": words(
        "taste as you go|use fresh herbs|keep your knives sharp|read the recipe first",
        "|",
    ),
    "traveling": words(
        "pack light|learn a few words|keep your papers safe|arrive early",
        "|",
    ),
    "saving money": words(
        "write down what you spend|cook at home|wait a day before you buy|compare prices",
        "|",
    ),
    "staying healthy": words(
        "walk every day|drink enough water|eat more fruit|sleep eight hours",
        "|",
    ),
    "writing": words(
        "use short sentences|read it aloud|write every day|remove what is not needed",
        "|",
    ),
    "gardening": words(
        "water in the morning|choose a sunny place|pull the weeds early|feed the soil",
        "|",
    ),
}
LISTS = {
    "colors": COLORS,
    "animals": ANIMALS,
    "cities": CITIES,
    "jobs": JOBS,
    "hobbies": HOBBIES,
    "names": FIRST_NAMES,
    "ingredients": INGREDIENTS,
    "things in a shop": ITEMS,
}

TRAITS = words("brave shy clever kind lazy curious tiny proud gentle noisy lonely happy")
SPOTS = words("forest river mountain village garden beach castle cave meadow lake desert island")
FINDS = words(
    "lost key|broken bridge|golden egg|strange map|sleeping giant|hidden door|crying bird|magic lamp|old book|"
    "bright star|small boat|silver bell",
    "|",
)

# A role of a character: the traits, then the mottos, that suit it.
ROLES = {
    "pilot": (
        words("calm focused daring precise bold"),
        words("The sky is only the beginning.|Look up and keep flying.|Every landing is a gift.", "|"),
    ),
    "baker": (
        words("warm patient generous early cheerful"),
        words("Good bread takes time.|Share the first slice.|Rise before the sun.", "|"),
    ),
    "blacksmith": (
        words("strong stubborn honest patient proud"),
        words("Strike while the iron is hot.|Strength comes from fire.|Honest work never bends.", "|"),
    ),
    "wizard": (
        words("wise curious mysterious patient odd"),
        words("Every riddle has a door.|Magic favors the patient.|Knowledge is the brightest spell.", "|"),
    ),
    "knight": (
        words("brave loyal honest strong proud"),
        words("Honor before gold.|Stand firm and fear nothing.|My word is my shield.", "|"),
    ),
    "thief": (
        words("quick clever quiet charming bold"),
        words("No lock lasts forever.|Quiet feet, quick hands.|Take the risk, leave no trace.", "|"),
    ),
    "healer": (
        words("kind gentle patient calm wise"),
        words("Every wound can close.|Kindness is the best medicine.|First, do no harm.", "|"),
    ),
    "ranger": (
        words("quiet alert patient tough loyal"),
        words("Leave no trail behind.|The forest knows the way.|Walk softly, see far.", "|"),
    ),
    "sailor": (
        words("tough cheerful brave restless loyal"),
        words("The wind decides, we steer.|Calm seas teach nothing.|Home is where the tide goes.", "|"),
    ),
    "captain": (
        words("bold fair brave stern loyal"),
        words("The ship comes first.|Hold the course.|Lead and others will follow.", "|"),
    ),
    "teacher": (
        words("patient kind clever fair cheerful"),
        words("Every question matters.|Learn a little every day.|Mistakes are good teachers.", "|"),
    ),
    "detective": (
        words("sharp curious patient stubborn calm"),
        words("The truth leaves footprints.|Look twice, judge once.|Every clue has a story.", "|"),
    ),
    "chef": (
        words("creative bold precise passionate proud"),
        words("Taste everything twice.|Salt, fire and love.|A good meal needs no words.", "|"),
    ),
    "engineer": (
        words("clever precise practical patient curious"),
        words("Measure twice, build once.|If it breaks, make it better.|Simple things last.", "|"),
    ),
    "farmer": (
        words("patient honest strong humble kind"),
        words("You harvest what you plant.|Rain or shine, we work.|The land remembers.", "|"),
    ),
    "doctor": (
        words("calm kind precise tireless honest"),
        words("Listen first, then heal.|Every life counts.|Care before cure.", "|"),
    ),
    "painter": (
        words("creative dreamy sensitive free curious"),
        words("Paint what you feel.|Every color has a voice.|See the world twice.", "|"),
    ),
    "musician": (
        words("creative lively free passionate warm"),
        words("Play it from the heart.|Silence is music too.|Find your own rhythm.", "|"),
    ),
    "merchant": (
        words("clever charming careful lucky bold"),
        words("A fair price makes a friend.|Gold loves the patient.|Know the worth of things.", "|"),
    ),
    "hunter": (
        words("quiet quick alert tough patient"),
        words("Patience fills the pot.|One arrow is enough.|Listen to the wind.", "|"),
    ),
    "gardener": (
        words("patient gentle humble calm kind"),
        words("Small seeds, tall trees.|Everything grows in time.|Water what you love.", "|"),
    ),
    "librarian": (
        words("quiet wise orderly patient curious"),
        words("Read first, speak later.|Every book is a door.|Order brings peace.", "|"),
    ),
    "explorer": (
        words("curious brave restless tough bold"),
        words("Go where the map ends.|The next hill calls.|Walk far, fear little.", "|"),
    ),
    "inventor": (
        words("clever curious odd tireless creative"),
        words("Try again, but better.|Ideas want to be built.|Failure is a first draft.", "|"),
    ),
    "astronomer": (
        words("patient curious dreamy precise wise"),
        words("The stars answer slowly.|Look up and wonder.|Night is full of light.", "|"),
    ),
    "nurse": (
        words("kind calm tireless warm strong"),
        words("A gentle hand heals.|Stay until morning.|Care is never wasted.", "|"),
    ),
    "guard": (
        words("alert loyal stern strong patient"),
        words("None shall pass.|Eyes open, all night.|Duty before sleep.", "|"),
    ),
    "spy": (
        words("quiet clever charming careful cold"),
        words("Trust no one, smile at all.|Secrets keep me alive.|See all, say nothing.", "|"),
    ),
    "king": (
        words("proud wise stern fair generous"),
        words("The crown serves the people.|Rule with an open hand.|Justice before mercy.", "|"),
    ),
    "queen": (
        words("wise proud fair graceful strong"),
        words("Lead with grace.|A calm voice rules longest.|My people are my crown.", "|"),
    ),
    "poet": (
        words("dreamy sensitive honest free gentle"),
        words("Words are wings.|Say it softly, say it true.|Every day is a verse.", "|"),
    ),
    "fisher": (
        words("patient quiet humble tough calm"),
        words("The sea gives in time.|Wait, then pull.|Mend the net at dusk.", "|"),
    ),
    "robot": (
        words("precise loyal tireless logical curious"),
        words("Error is only data.|I learn, therefore I am.|Serve, think, repeat.", "|"),
    ),
    "dragon rider": (
        words("brave wild loyal bold proud"),
        words("Fire below, sky above.|Fly high or not at all.|Two hearts, one flame.", "|"),
    ),
    "monk": (
        words("calm humble wise quiet gentle"),
        words("Peace begins within.|Breathe and be still.|Want little, have much.", "|"),
    ),
    "mechanic": (
        words("practical clever honest tough patient"),
        words("Everything can be fixed.|Listen to the engine.|Tight bolts, long roads.", "|"),
    ),
    "scientist": (
        words("curious precise logical patient clever"),
        words("Doubt is a good start.|Test it, then trust it.|The data will tell.", "|"),
    ),
    "warrior": (
        words("strong brave fierce loyal proud"),
        words("Courage is my armor.|Fall down, stand up.|Fight for those you love.", "|"),
    ),
    "archer": (
        words("focused quick calm precise proud"),
        words("Breathe, aim, release.|The arrow knows the heart.|One breath, one shot.", "|"),
    ),
    "witch": (
        words("mysterious clever odd wise wild"),
        words("The moon keeps my secrets.|Stir slowly, wish well.|Nature pays its debts.", "|"),
    ),
}
ANY_ROLE = (words("brave kind clever calm loyal"), words("Never give up.|One step at a time.|Do it with heart.", "|"))
