"""More families of labelled phrases: feelings, urgency, languages, goods, genres, kinds of sentences; and the list of all families."""

from rtlang.model.embedded.classes import ASSISTANT, BARE, COMMAND, REPORT, REQUEST, SENTENCE, TEAM, TOPIC, Family
from rtlang.model.embedded.phrases import phrases

EMOTION = {
    "joy": phrases(
        "I am so happy today|what a wonderful day|we won and we danced all night|I cannot stop smiling|this is great news|"
        "I am full of joy|my heart sings|we laughed until late|I got the job, hooray|I feel great|the party was so much fun|"
        "it was the happiest day of my life||I am so happy that we won|I feel wonderful today|we laughed and danced all night"
    ),
    "sadness": phrases(
        "I miss my old friend so much|I cried all night|nobody came to my party|I feel lonely and lost|my cat died last week|"
        "I am so sad today|it broke my heart|he left and never came back|I feel empty|tears ran down my face|"
        "I lost the ring of my grandmother|nothing makes me happy anymore||I feel so sad and lonely|I cried when my cat died|"
        "my friend left and I miss him"
    ),
    "anger": phrases(
        "how dare you|I am furious|stop shouting at me|he lied to me again and I have had enough|this makes me so angry|"
        "get out of my house|I could scream|she broke my car and just laughed|I hate it when people cheat|leave me alone now|"
        "you ruined everything and you do not even care|I will never forgive him||I am so angry at him|"
        "he lied and I am furious|I have had enough, get out"
    ),
    "fear": phrases(
        "there is someone in the house|I am afraid of the dark|my hands are shaking|please do not leave me alone here|"
        "I heard steps behind me|I am scared of the exam|what if the plane falls|the noise in the cellar frightens me|"
        "I dare not look down|I am so worried about the operation|the big dog frightens me|I hid under the bed||"
        "I am scared of the dark|I heard a noise in the house and I am afraid|the steps behind me frighten me"
    ),
    "surprise": phrases(
        "wow, I did not expect that|I cannot believe it|what, you are here already|that came out of nowhere|"
        "oh, is that really for me|nobody told me that you were coming|suddenly the door opened and everyone was there|"
        "I never thought that she would win|you did what|it was a complete surprise|who would have thought it|no way||"
        "wow, I cannot believe it|I never thought that you were coming|oh, that is a surprise"
    ),
    "love": phrases(
        "I love you with all my heart|you mean the world to me|I want to be with you forever|she is the love of my life|"
        "my dear, I think of you all day|hold my hand and never let go|I love my little sister so much|you are my sunshine|"
        "I fell in love with him at once|I kiss your letter every night|nobody is as dear to me as you|he gave me roses and a kiss||"
        "I love him with all my heart|you are the love of my life|my dear, I want to hold your hand"
    ),
}
URGENCY = {
    "high": phrases(
        "the whole office is offline|water is running out of the wall right now|we need help immediately|the server is down|"
        "there is smoke in the kitchen|I need this within an hour|this cannot wait|nobody can work since this morning|"
        "our data is gone and customers are waiting|emergency, the door is locked and a child is inside|it is urgent|"
        "please call me at once||the server is down and we need help at once|there is smoke in the office, it is urgent|"
        "this cannot wait, customers are waiting"
    ),
    "medium": phrases(
        "the printer works only now and then|please fix it this week|one of two screens is broken|the page is a bit slow|"
        "I need an answer by Friday|the heating is weak|the report should be ready in a few days|my mouse loses its connection|"
        "it fails about once a day|please look at it when you are done with the server|we can work, but not well|"
        "the door closes badly||please fix the printer this week|the screen is slow, I need an answer by Friday|"
        "it works, but it fails once a day"
    ),
    "low": phrases(
        "no hurry|whenever you have time|it is not important|maybe next month|I only wonder how it works|just a small wish|"
        "the color of the button could be nicer|there is a spelling mistake on the last page|some day we might need a new chair|"
        "it does not disturb me much|take your time|I have a question, it can wait||it can wait, take your time|"
        "a small wish, whenever you have time|it is not important, maybe next month"
    ),
}
SPAM = {
    "spam": phrases(
        "you have won a million dollars|click here to claim your prize|earn money from home fast|cheap pills without a doctor|"
        "your account will be closed, send your password now|lose ten kilos in a week|hot offer, only today, buy now|"
        "a prince wants to send you gold|free phone for the first hundred callers|double your money in one day|"
        "you are our lucky winner|act now and get a free watch||click here, you have won a free phone|"
        "you are the lucky winner of a million dollars|double your money fast, buy now"
    ),
    "not spam": phrases(
        "the meeting is moved to three|can you send me the notes from Monday|happy birthday from all of us|lunch at noon|"
        "I left my keys at your place|here are the pictures of our trip|thanks for your help yesterday|the baby is asleep|"
        "please read the draft before Friday|I will be ten minutes late|grandmother says hello|do you have time for a call||"
        "lunch is moved to three|thanks for the pictures of the trip|can you read my notes before Monday"
    ),
}
LANGUAGE = {
    "English": phrases(
        "the house is big|where is the station|I would like a coffee|good morning, my friend|we are going home|thank you very much|"
        "the child plays in the garden|what time is it|my name is Tom|I do not understand||where is my house|"
        "the child is going home|I would like to play"
    ),
    "Spanish": phrases(
        "la casa es grande|donde esta la estacion|quiero un cafe|buenos dias, mi amigo|vamos a la casa|muchas gracias|"
        "el gato duerme en la silla|que hora es|me llamo Carla|no entiendo nada||la silla es grande|donde esta mi amigo|quiero la casa"
    ),
    "French": phrases(
        "la maison est grande|ou est la gare|je voudrais un cafe|bonjour, mon ami|nous allons au parc|merci beaucoup|"
        "le chat dort sur la chaise|quelle heure est-il|je ne comprends pas|elle mange une pomme||le parc est grand|"
        "ou est mon ami|je voudrais une pomme"
    ),
    "German": phrases(
        "das Haus ist gross|wo ist der Bahnhof|ich moechte einen Kaffee|guten Morgen, mein Freund|wir gehen nach Hause|vielen Dank|"
        "die Katze schlaeft auf dem Stuhl|wie spaet ist es|ich heisse Nils|das verstehe ich nicht||der Bahnhof ist gross|"
        "wo ist mein Freund|ich moechte nach Hause"
    ),
    "Italian": phrases(
        "la casa e molto bella|dove si trova la stazione|vorrei un bicchiere di acqua|buongiorno, amico mio|andiamo al mare|"
        "mille grazie|il gatto dorme sulla sedia|che ore sono|mi chiamo Bruno|non capisco niente||il mare e molto bello|"
        "dove si trova il gatto|vorrei andare al mare"
    ),
}
GOODS = {
    "clothing": phrases(
        "wool scarf|blue jacket|cotton shirt|winter coat|leather boots|summer dress|black trousers|warm socks|rain hat|silk tie|"
        "long skirt|running shoes||winter jacket|wool socks|leather shoes|cotton dress"
    ),
    "furniture": phrases(
        "wooden chair|oak table|book shelf|double bed|office desk|leather sofa|kitchen stool|glass cabinet|coffee table|"
        "garden bench|wardrobe with mirror|rocking chair||oak desk|wooden shelf|leather chair|double wardrobe"
    ),
    "kitchen": phrases(
        "frying pan|steel pot|tea kettle|bread knife|set of spoons|coffee mug|soup bowl|wooden spoon|cake tin|pepper mill|"
        "baking tray|salad plate||steel pan|soup spoon|tea mug|cake knife"
    ),
    "electronics": phrases(
        "phone charger|gaming laptop|wireless mouse|digital camera|flat screen|radio with clock|small speaker|memory card|"
        "tablet computer|battery pack|headphones|video cable||wireless speaker|phone battery|laptop screen|camera cable"
    ),
    "garden tools": phrases(
        "watering can|iron rake|flower pot|garden hose|bag of seeds|grass cutter|plant food|small shovel|hedge scissors|"
        "wheelbarrow|bird house|rose fence||flower seeds|garden shovel|grass scissors|iron watering can"
    ),
    "toys": phrases(
        "teddy bear|wooden train|toy car|puzzle with animals|doll house|building blocks|paper kite|spinning top|card game|"
        "water pistol|jumping rope|rubber duck||toy train|rubber bear|doll with blocks|animal card game"
    ),
    "food": phrases(
        "white bread|goat cheese|apple juice|dark chocolate|olive oil|jar of honey|green tea|tomato soup|bag of rice|"
        "orange jam|dried beans|fresh eggs||goat milk bread|jar of jam|bag of beans|dark honey"
    ),
}
GENRE = {
    "mystery": phrases(
        "a detective looks for the missing ring|who killed the old lord|a letter without a name leads to a secret|"
        "the butler knows more than he says|a body is found in the library|the clues lead to the harbor|"
        "every guest has something to hide|an inspector solves her last case||the detective looks for a body|"
        "the clues lead to the butler|a secret letter is found in the library"
    ),
    "romance": phrases(
        "two strangers fall in love on a train|she must choose between two men|a wedding brings old lovers together|"
        "he writes her a letter every day|a summer of love in Rome|the baker falls for the florist|their first kiss changes all|"
        "love finds them again after forty years||two old lovers meet in Rome|she falls in love at a wedding|he writes of their first kiss"
    ),
    "fantasy": phrases(
        "a dragon guards a magic sword|the young wizard learns a spell|elves leave the dying forest|a queen of ice wakes up|"
        "a boy finds a door to another world|the king sends a knight to the dark tower|a witch turns men into ravens|"
        "the last unicorn crosses the mountains||a wizard guards the magic door|the knight wakes a dragon|the witch learns a spell"
    ),
    "science fiction": phrases(
        "a ship is lost between the stars|robots rule the city|the crew wakes up on Mars|an alien sends a signal|"
        "a machine can read minds|people live under the ice of a moon|a clone looks for his maker|time travel goes wrong||"
        "robots send a signal from Mars|the crew is lost on an alien moon|a machine travels in time"
    ),
    "horror": phrases(
        "something breathes under the bed|the dead walk at midnight|a doll moves when nobody looks|no one leaves the house alive|"
        "blood drips from the ceiling|a ghost sings in the cellar|the children stare and do not blink|"
        "the grave is empty and the door is open||the dead breathe in the cellar|a ghost stares at midnight|blood under the bed"
    ),
}
ACT = {
    "question": phrases(
        "where did you put the keys|how old is your sister|who opened the window|what do you want for dinner|why is the door open|"
        "when does the shop close|which book is yours|do you like tea|is it far to the station|can anyone hear me||"
        "who opened the shop|where is your sister|why do you want the keys|what book do you like"
    ),
    "request": phrases(
        "please close the window|bring me a glass of water|hand me the salt|come here, please|wait for me at the door|"
        "please turn down the music|help me with this box|give me your hand|please write to your mother|sit down, please||"
        "please bring me the box|close the door, please|give me the salt|wait for your mother"
    ),
    "statement": phrases(
        "the shop closes at six|my sister is ten years old|the keys are on the table|we had soup for dinner|the window is open|"
        "this book belongs to Tom|the station is near|I like tea with milk|the train was full|two and two make four||"
        "the station is open|we had tea at six|my book is on the table|the shop is near the station"
    ),
    "promise": phrases(
        "I will call you tomorrow|I promise to be on time|you will get your money on Friday|I will never be late again|"
        "we will finish it tonight, you have my word|I give you my word|I will help you with the box, I promise|"
        "trust me, it will be done by noon|I will bring it back, for sure||I promise to call you on Friday|"
        "you have my word, I will be on time|we will help you tonight, I promise"
    ),
}
DIRECTION = {
    "past": phrases(
        "we walked to the lake|she wrote a letter|he had a dog|they were tired|I saw him yesterday|the train left an hour ago|"
        "last year we lived in Oslo|the shop was closed|she baked a cake|it rained||last year she had a dog|"
        "they walked to the train|I saw a letter yesterday"
    ),
    "present": phrases(
        "we are walking to the lake|she is writing a letter|he has a dog|they are tired|I see him now|the train is leaving|"
        "we live in Oslo at the moment|the shop is closed|she is baking a cake|it is raining||she has a letter|"
        "they are walking now|the dog is tired"
    ),
    "future": phrases(
        "we will walk to the lake|she is going to write a letter|he will have a dog|they will be tired|I will see him tomorrow|"
        "the train will leave in an hour|next year we will live in Oslo|the shop will be closed|she will bake a cake|it will rain||"
        "next year she will have a dog|they will walk tomorrow|the shop will close in an hour"
    ),
}
DANGER = {
    "safe": phrases(
        "the floor is dry|the stove is off|all doors are locked|the path is wide and even|the water is clean|everyone has a helmet|"
        "the ladder stands firm|the fire is out|the dog is on a leash|the bridge was tested||the stove is off and the fire is out|"
        "the floor is even|all doors were tested"
    ),
    "dangerous": phrases(
        "the cable is broken and wet|a knife lies on the edge|the stove is on and nobody is home|the ice is thin|the brakes fail|"
        "the ladder shakes|there is glass on the floor|gas is leaking|the bridge has a hole|the dog bites||the ladder is broken|"
        "a cable lies on the wet floor|the ice has a hole"
    ),
}

FAMILIES = (
    Family("team", REQUEST, TEAM),
    Family("intent", COMMAND, ASSISTANT),
    Family("topic", REPORT, TOPIC),
    Family("emotion", SENTENCE, EMOTION),
    Family("urgency", REQUEST, URGENCY),
    Family("type", SENTENCE, SPAM),
    Family("language", BARE, LANGUAGE),
    Family("category", BARE, GOODS),
    Family("genre", REPORT, GENRE),
    Family("kind of sentence", BARE, ACT),
    Family("time", BARE, DIRECTION),
    Family("safety", REPORT, DANGER),
)
TEAMS, INTENTS, TOPICS = FAMILIES[0], FAMILIES[1], FAMILIES[2]
