"""Word lists of the training corpus. The words of the `HELD_*` lists are for evaluation only: training never draws them.

`spelling` alters the words of every list to make new ones, so a list that is drawn from nowhere else, or a word added to any, changes
the documents of a seed.
"""

from rtlang.model.embedded.text_files import blocks_of


def words(text: str, separator: str | None = None) -> tuple[str, ...]:
    """The words of a list that is written as one string."""
    return tuple(part.strip() for part in text.split(separator))


more = blocks_of("words")


def further(name: str) -> tuple[str, ...]:
    """The words of a list of words.txt; `|` parts them."""
    return words("|".join(more[name]), "|")


FIRST_NAMES = words("""
Ada Amir Anna Bella Ben Bruno Carla Chen Clara Dana David Elena Emma Erik Fatima Felix Grace Hana Hugo Ines Ivan Jack
James Julia Kai Karim Lara Leo Lily Lucas Maria Max Mia Mina Mira Nadia Nina Noah Nora Olga Omar Oscar Paula Pedro
Priya Rosa Ruth Sam Sara Sofia Tariq Theo Tom Uma Vera Victor Wendy Yara Yuki Zara Zoe Adam Alice Bob Carol Daniel Eve
Frank Helen Iris John Kira Liam Maya Nils Otto Petra Quinn Rita Simon Tara Ursula Vikram Will Xenia Yusuf Zeno Aaron
Abigail Ahmed Aisha Akira Alberto Alejandro Alexander Amelia Amina Andrea Andrew Angela Antonio Arjun Astrid Barbara
Beatriz Benjamin Bernard Bridget Camille Catherine Charles Charlotte Chloe Christopher Claudia Connor Cynthia Deborah
Deepak Diego Dominic Dorothy Edward Eleanor Elizabeth Emily Enrique Ethan Evelyn Farah Fernando Fiona Florence Francesca
Gabriel George Georgia Giovanni Gloria Gustav Hamid Hannah Harold Harriet Hassan Henrik Hiroshi Isabella Jamal Jasmine
Jennifer Jessica Joanna Jonathan Joseph Joshua Juan Kamala Katarzyna Kenji Kevin Khalid Kristen Laila Laurent Leila
Leonard Lindsey Louise Magnus Malik Marcus Margaret Mariam Matthew Mei Michael Miguel Mohammed Monica Naomi Natasha
Nathan Nicholas Oliver Olivia Pablo Patricia Patrick Philip Rachel Rafael Raj Rebecca Ricardo Robert Roger Samuel
Sandra Sanjay Sebastian Sergei Shanice Siobhan Sophie Stefan Stephanie Susan Svetlana Sven Takeshi Teresa Thomas
Timothy Valeria Vanessa Veronica Vincent Wei William Xavier Yasmin Yolanda Zainab
""") + further("first_names")
HELD_FIRST_NAMES = words("""
Bianca Cedric Dmitri Esther Gideon Ingrid Joel Keiko Lorenzo Marta Nikhil Ophelia Adelaide Bartholomew Callum Delphine
Emmanuel Freya Giselle Humphrey Imogen Jacinta Kwame Lakshmi Mortimer Nanette Oswald Penelope Quentin Rosalind
Salvatore Tabitha Umberto Violetta Wilhelmina Xiomara Yevgeny Zachary Annika Boris Colette Desmond Euphemia Fabrizio
""")
FAMILY_NAMES = words("""
Smith Jones Taylor Brown Williams Wilson Johnson Davies Robinson Wright Thompson Evans Walker White Roberts Green Hall
Wood Jackson Clarke Garcia Martinez Rodriguez Lopez Hernandez Gonzalez Perez Sanchez Ramirez Torres Flores Rivera
Gomez Diaz Cruz Morales Silva Santos Oliveira Pereira Costa Ferreira Almeida Rossi Russo Ferrari Bianchi Romano Ricci
Marino Greco Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Koch Bauer Richter Klein Wolf
Novak Kowalski Nowak Wozniak Ivanov Petrov Smirnov Volkov Popov Sokolov Horvath Nagy Toth Szabo Nguyen Tran Pham Kim
Lee Park Choi Jung Chang Wang Zhang Liu Huang Zhao Zhou Tanaka Suzuki Sato Yamamoto Watanabe Ito Kobayashi Singh Kumar
Sharma Gupta Mehta Reddy Iyer Khan Ahmad Hussain Malik Rahman Haddad Mansour Nasser Farouk Okafor Adeyemi Mensah
Diallo Nkosi Abebe Hansen Johansen Larsen Andersen Nilsson Svensson Lindberg Korhonen Virtanen Laine Dubois Laurent
Moreau Lefebvre Girard Fontaine Janssen Bakker Visser Dekker Peeters Murphy Kelly Byrne Ryan Walsh McCarthy Campbell
Stewart Fraser Ferguson MacLeod Whitfield Ashworth Bennett Coleman Fletcher Gallagher Harrington Kensington Lockwood
""") + further("family_names")
HELD_FAMILY_NAMES = words("""
Abernathy Bellweather Castellanos Dvorak Eriksson Fitzgerald Goldsmith Hawthorne Iglesias Jankowski Kaminski Lindqvist
Montgomery Nakamura Ostrowski Papadopoulos Quigley Rasmussen Sutherland Takahashi Underwood Valentino Winterbourne
Yilmaz Zimmerman Blackwood Chatterjee Delacroix Espinoza Featherstone Guerrero Hallström
""")
CITIES = words("""
Paris London Berlin Rome Madrid Oslo Cairo Delhi Tokyo Lima Boston Chicago Dublin Vienna Prague Athens Lagos Nairobi
Seoul Sydney Lisbon Warsaw Toronto Denver Quito Accra Hanoi Geneva Porto Turin Amsterdam Antwerp Auckland Austin
Baltimore Bangkok Barcelona Basel Beirut Belgrade Birmingham Bogota Bologna Bordeaux Bratislava Bremen Brisbane Bristol
Brussels Bucharest Budapest Calgary Canberra Cardiff Casablanca Cologne Copenhagen Dakar Dallas Damascus Detroit
Dresden Dubai Durban Edinburgh Florence Frankfurt Glasgow Gothenburg Granada Hamburg Havana Helsinki Houston Istanbul
Jakarta Jerusalem Johannesburg Karachi Kathmandu Kingston Kyoto Leeds Leipzig Ljubljana Luxembourg Lyon Manchester
Manila Marseille Melbourne Memphis Miami Milan Minsk Mombasa Monterrey Montevideo Moscow Mumbai Munich Nagoya Naples
Nottingham Orlando Ottawa Palermo Panama Perth Phoenix Pittsburgh Portland Rabat Reykjavik Riga Rotterdam Salzburg
Santiago Sapporo Sarajevo Seattle Shanghai Sheffield Singapore Sofia Stockholm Strasbourg Stuttgart Tallinn Tampa
Tehran Toulouse Valencia Vancouver Venice Vilnius Wellington Zagreb Zurich
""") + further("cities")
HELD_CITIES = words("""
Krakow Seville Montreal Tunis Bergen Osaka Aberdeen Bilbao Charleston Dortmund Eindhoven Fukuoka  Guadalajara Hyderabad
Innsbruck Jacksonville Kampala Liverpool Maastricht Newcastle Odessa Philadelphia Rochester Sacramento Thessaloniki
Utrecht Verona Winnipeg Yokohama Zanzibar Albuquerque Brighton Cordoba Dundee Esbjerg Galway
""")
PLACE_FIRST = words(
    "New Old San Santa Port Lake Fort Upper Lower North South East West Saint Mount Little Great Bad Los El"
)
PLACE_LAST = words("Harbor Springs Falls Hill Beach City Valley Heights Bay Park Creek Ridge Town Island Bridge Field")
COLORS = words("red blue green black white yellow brown gray orange purple")
ADJECTIVES = words("""
red blue green black white yellow brown gray orange purple small large old new wooden steel glass cotton plastic
silver golden round heavy light pink beige striped folding portable ceramic woolen linen bamboo copper tall wide narrow
""") + further("adjectives")
ITEMS = words("""
chair table lamp mug kettle notebook pen backpack jacket scarf umbrella clock mirror pillow blanket bottle candle basket
hammer ladder bicycle helmet keyboard monitor speaker camera tent rope bowl plate vase rug desk sofa guitar drum flute
kite puzzle book apple shirt hat ring bag cup spoon door stamp ball wheel coat boot map radio cable brush towel armchair
apron bandage banner barrel bathtub battery beaker belt bench binder blender bookcase bracelet bucket
button cabinet calculator calendar carpet cart charger chisel cleaner coaster collar cooker cooler corkscrew cradle
crate curtain cushion drawer dresser drill dumbbell easel envelope eraser fan faucet filter flag flashlight folder fork
fountain frame freezer fridge funnel gate glove grater grill hairdryer hanger headphone heater hook hose
iron jar jug juicer lawnmower lens lid lock magnet marker mat mattress microphone mixer mop mousepad
nail napkin necklace needle nozzle oven paddle paintbrush pan paperclip pencil peg piano pin pipe pitcher
pot printer projector pump racket rake razor recorder ruler saddle sandal saw scooter screw screwdriver seat
shovel sink skateboard slipper sock sponge stapler sticker stool stove strap suitcase sweater switch
teapot thermometer tie tile tire toothbrush torch tray tripod trumpet tumbler tyre valve violin wagon
wardrobe washer wheelbarrow whiteboard wrench zipper router tablet laptop phone webcam
""") + further("items")
HELD_ITEMS = words("""
telescope wallet toaster hammock compass lantern nutcracker oboe pincushion bugle accordion
binocular chandelier doorbell earring footstool goblet
harmonica inkwell jumper kayak lunchbox mandolin nightstand ottoman parasol rucksack saucepan tambourine
ukulele xylophone bassoon candlestick dartboard eggcup figurine gramophone
hourglass keyring letterbox moccasin
""")
LONG_ITEMS = words(
    "bedside table|hat stand|lamp shade|mug rack|picture frame|shelf unit|sleeping bag|tool kit|charger cable|desk lamp|"
    "coffee grinder|rain coat|water bottle|phone case|garden hose|bread board|office chair|travel mug|running shoe|bike light|"
    "wall clock|camping stove|shower curtain|baking tray|hair dryer|mouse pad|laptop stand|book stand|wine glass|cutting board",
    "|",
) + further("long_items")
HELD_LONG_ITEMS = words("velvet curtain|waffle iron|yoga mat|salt mill|ironing board|piggy bank|door mat", "|")
MONTHS = words("January February March April May June July August September October November December")
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
EVENTS = words(
    """
concert|workshop|meeting|lecture|picnic|dinner|exhibition|tournament|party|hike|festival|seminar|webinar|book club|
charity run|quiz night|film screening|wine tasting|open day|dance class|job fair|poetry reading|craft market|reunion|
training course|town meeting|science fair|bake sale|art auction|board game night|yoga session|press conference|ceremony|
parade|hackathon|puppet show|choir rehearsal|garden tour|cooking class|flea market
""",
    "|",
) + further("events")
HELD_EVENTS = words("masquerade|retreat|bonfire|symposium|regatta|debate night|carnival|potluck", "|")
VENUES = words(
    """
library|town hall|park|museum|school|harbor|garden|theater|office|cafe|stadium|market|old mill|main square|church hall|
gym|community center|city hall|art gallery|beach|university|hotel lobby|train station|opera house|sports club|zoo|castle|
rooftop bar|conference room|bookshop|winery|farm|concert hall|cinema|youth center|court house|lake house|food court|
science center|old factory
""",
    "|",
) + further("venues")
HELD_VENUES = words("planetarium|greenhouse|lighthouse|boathouse|monastery|aquarium|ballroom|observatory", "|")
JOBS = words(
    """
teacher|nurse|baker|pilot|farmer|lawyer|dentist|painter|chef|engineer|driver|writer|plumber|gardener|librarian|sailor|
doctor|singer|carpenter|tailor|accountant|actor|architect|artist|astronomer|barber|bartender|biologist|bookkeeper|
bricklayer|bus driver|butcher|cashier|chemist|cleaner|clerk|coach|composer|consultant|cook|court reporter|dancer|
data analyst|designer|detective|economist|editor|electrician|firefighter|fisherman|flight attendant|florist|geologist|
graphic designer|guard|hairdresser|historian|illustrator|journalist|judge|lifeguard|locksmith|machinist|mail carrier|
manager|mathematician|mechanic|miner|model|musician|notary|optician|paramedic|pharmacist|photographer|physicist|
police officer|postman|programmer|professor|psychologist|receptionist|reporter|researcher|roofer|sales assistant|
sculptor|secretary|social worker|software developer|soldier|surgeon|surveyor|technician|therapist|tour guide|
train conductor|translator|truck driver|veterinarian|waiter|web designer|welder|zookeeper
""",
    "|",
) + further("jobs")
HELD_JOBS = words(
    "beekeeper|upholsterer|sommelier|glassblower|midwife|auctioneer|cartographer|diplomat|jeweler|puppeteer|stonemason|"
    "typesetter|umpire|watchmaker|yoga instructor",
    "|",
)
HOBBIES = words(
    """
chess|tennis|cooking|fishing|painting|hiking|reading|dancing|swimming|cycling|knitting|singing|running|gardening|archery|
badminton|baking|basketball|bird watching|boxing|calligraphy|camping|climbing|coin collecting|crossword puzzles|darts|
drawing|embroidery|fencing|football|genealogy|golf|gymnastics|handball|hockey|horse riding|ice skating|jogging|judo|
juggling|karate|kayaking|model trains|mountain biking|origami|photography|playing the piano|playing the violin|poetry|
pottery|quilting|rowing|rugby|sailing|sewing|skateboarding|skiing|snowboarding|stamp collecting|stargazing|surfing|
table tennis|theater|travel|volleyball|walking|weightlifting|woodworking|writing|yoga
""",
    "|",
) + further("hobbies")
HELD_HOBBIES = words(
    "beekeeping|falconry|paragliding|scrapbooking|croquet|lacrosse|taxidermy|spearfishing|whittling|orienteering|"
    "bookbinding|curling|candle making|squash|geocaching",
    "|",
)
DEVICES = words(
    "laptop printer phone router tablet screen scanner keyboard server camera projector headset microphone monitor mouse "
    "modem speaker webcam copier charger switch heater elevator alarm thermostat intercom desktop notebook"
) + further("devices")
HELD_DEVICES = words("turntable shredder smartwatch turnstile dehumidifier plotter defibrillator oscilloscope")
PROBLEMS = words(
    "does not turn on|is very slow|makes a loud noise|keeps restarting|shows a blank screen|will not connect|overheats|"
    "lost all data|has a broken button|does not charge|smells of smoke|stops every hour|shows an error message|"
    "cannot find the network|has a cracked case|drains its battery|does not wake up|beeps all the time|"
    "prints only blank pages|lost its settings|is stuck on the logo|has no sound|asks for a password|disconnects at night",
    "|",
) + further("problems")
HELD_PROBLEMS = words(
    "leaks water|flickers at random|hums when idle|refuses to update|jams twice a day|displays the wrong language", "|"
)
DISHES = words(
    "soup salad stew bread pie cake pasta curry omelet pancakes risotto lasagna chili dumplings noodles tacos pizza muffins "
    "cookies casserole goulash paella ramen burritos meatballs sandwiches waffles pudding porridge quiche"
) + further("dishes")
HELD_DISHES = words(
    "moussaka strudel gnocchi tagine ceviche pierogi chowder focaccia ratatouille empanadas borscht crumble"
)
INGREDIENTS = words("""
flour sugar butter rice beans tomatoes onions carrots potatoes milk cheese mushrooms spinach lemons apples eggs garlic
pepper honey salt cream basil chicken beef salmon tuna bacon ham lentils chickpeas cabbage celery corn cucumber eggplant
ginger kale leeks lettuce mint mustard oats olives oregano parsley peanuts pears peas plums pumpkin raisins rosemary
saffron sausages shrimp thyme tofu turkey vanilla vinegar walnuts yeast yogurt zucchini almonds cinnamon cocoa coconut
""") + further("ingredients")
HELD_INGREDIENTS = words("asparagus artichokes tarragon hazelnuts cranberries paprika mozzarella quinoa turnips nutmeg")
ANIMALS = words("fox cat dog owl bear rabbit mouse turtle frog duck horse bird wolf goat bee whale dragon robot")
THINGS = words("apples coins books cards stones shells marbles stamps pencils cookies")
MATERIALS = words(
    "oak steel glass cotton leather plastic bamboo ceramic aluminum wool linen marble rubber paper silk copper"
) + further("materials")
CURRENCIES = words("dollars euros pounds francs yen crowns pesos rupees")
DEPARTMENTS = words(
    "sales|marketing|finance|human resources|support|engineering|research|logistics|legal|design|IT|purchasing", "|"
) + further("departments")
SKILLS = words(
    "Python|Java|Excel|Spanish|French|German|welding|bookkeeping|first aid|Photoshop|SQL|Linux|teamwork|copywriting|"
    "project management|public speaking|data entry|negotiation|statistics|customer service|C++|Docker|cooking|driving",
    "|",
) + further("skills")
SPORTS = words("football basketball hockey tennis volleyball handball rugby baseball cricket badminton") + further(
    "sports"
)
TEAM_WORDS = words(
    "Tigers Lions Eagles Bears Wolves Sharks Rovers United Rangers Hawks Giants Comets Stars Kings Panthers City"
) + further("team_words")
GENRES = words(
    "thriller|comedy|drama|romance|mystery|fantasy|horror|biography|adventure|science fiction|western|history", "|"
) + further("genres")
COMPANY_LAST = words(
    "Ltd Inc Group Labs Systems Foods Partners Works Media Logistics GmbH Studio Energy Bank Motors & Co"
) + further("company_last")
STREET_LAST = words("Street Avenue Road Lane Drive Court Way Square Boulevard Alley Place Terrace")
CONDITIONS = words(
    "sunny|cloudy|rainy|windy|foggy|snowy|stormy|clear|overcast|humid|light rain|heavy snow|partly cloudy|drizzle|hail",
    "|",
) + further("conditions")
SYMPTOMS = words(
    "a headache|a sore throat|back pain|a fever|a cough|dizziness|a rash|stomach pain|a swollen knee|trouble sleeping|"
    "chest pain|an earache|a toothache|blurred vision|tired legs|a stiff neck|nausea|itchy eyes",
    "|",
) + further("symptoms")
MEDICINES = words(
    "ibuprofen aspirin paracetamol amoxicillin insulin antacid cortisone melatonin codeine lozenges"
) + further("medicines")
TITLE_WORDS = words(
    "Silent River Night Garden Winter Shadow Golden Lost House Mirror Letters Stone Summer Island Broken Clock Last Train "
    "Red Sky Forgotten Song Empty City Hidden Light Paper Moon Iron Bridge Distant Shore Burning Field Sleeping Giant"
) + further("title_words")
