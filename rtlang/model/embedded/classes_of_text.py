"""More families of labelled phrases: feelings, urgency, languages, goods, genres, kinds of sentences; and the list of all families."""

from rtlang.model.embedded.classes import ASSISTANT, BARE, COMMAND, REPORT, REQUEST, SENTENCE, TEAM, TOPIC, Family
from rtlang.model.embedded.phrases import Phrases, phrases
from rtlang.model.embedded.text_files import blocks_of

EMOTION = {
    "joy": phrases(
        "I am so [happy/glad/cheerful] [today/that you are here/about it]|what a [wonderful/great/beautiful] [day/party]|"
        "we won and we [danced/sang] all night|I cannot stop [smiling/laughing]|this is [great/wonderful] news|"
        "I am full of joy|my heart sings|"
        "we laughed [until late/so much/and sang]|I got the job, hooray|I feel [great/happy/so good]|the party was so much fun|"
        "it was the happiest day of my life|[hooray/yes], [we won/it is my birthday/school is over]|"
        "[I/we] danced [with joy/because we won]|"
        "[today/this] makes me [happy/smile]|I [jumped/laughed] [with/for] joy||"
        "I am so happy that we won|I feel wonderful today|we laughed and danced all night"
    ),
    "sadness": phrases(
        "I miss [my old friend/my mother/my cat/him] so much|I cried [all night/for an hour/when he left]|"
        "nobody came to my party|"
        "I feel [lonely and lost/so alone/sad/empty]|my [cat/dog] died [last week/yesterday]|"
        "I am so [sad/lonely] [today/without you]|"
        "it broke my heart|he [left/went away] and never came back|tears ran down my face|I lost the ring of my grandmother|"
        "nothing makes me happy anymore|[my best friend/she] [died/left me/moved away][/ and I cry]|"
        "how [sad/lonely] [I am/it is here]|"
        "I [cannot stop/keep] crying||I feel so sad and lonely|I cried when my cat died|my friend left and I miss him"
    ),
    "anger": phrases(
        "how dare you|I am [furious/angry/so mad] [at you/with her/about this]|stop [shouting at/lying to] me|"
        "[he/she] lied to me again [and I have had enough/, I am angry]|this makes me [so angry/furious]|"
        "get out of my [house/room]|I could scream|"
        "she broke my car and just laughed|I hate it when people [cheat/lie]|leave me alone now|"
        "you ruined everything and you do not even care|"
        "I will never forgive [him/you]|I have had enough of [you/him/this]|"
        "[you/they] [lied/cheated] and now I am [angry/furious]|"
        "[get out/go away], I am [so angry/furious]|I was so angry [that I shouted/that I broke a cup]||"
        "I am so angry at him|he lied and I am furious|I have had enough, get out"
    ),
    "fear": phrases(
        "there is someone in [the house/the dark]|I am [afraid/scared] of [the night/spiders/the big dog/heights]|"
        "my hands are shaking|"
        "please do not leave me alone here|I heard [steps behind me/a noise in the cellar]|"
        "I am scared of the [exam/operation]|what if the plane falls|"
        "the noise in the cellar [frightens/scares] me|I dare not look down|I am so worried about the operation|"
        "the [big dog/storm/dark] frightens me|"
        "I hid under the bed|[steps/noises] in the [dark/cellar] [frighten/scare] me|"
        "I am so [afraid/frightened], [please stay/what was that noise]|"
        "[the dark/the house] makes me [shake/afraid]||"
        "I am scared of the dark|I heard a noise in the house and I am afraid|the steps behind me frighten me"
    ),
    "surprise": phrases(
        "[wow/oh], I did not expect [that/you/this]|I [cannot/can hardly] believe [it/that you came]|"
        "what, you are here already|"
        "that came out of nowhere|oh, is that really for me|nobody told me that you were coming|"
        "suddenly the door opened and everyone was there|"
        "I [never/would not have] thought that [she would win/it was you]|you did what|it was a [complete/big] surprise|"
        "who would have [thought it/expected that]|no way|[what a/oh, a] surprise[/, you are here]|"
        "[I never/nobody] expected [that/you to come]|"
        "wow, [you are here/she won/that is new to me]||"
        "wow, I cannot believe it|I never thought that you were coming|oh, that is a surprise"
    ),
    "love": phrases(
        "I love you [with all my heart/forever/so much]|you mean the world to me|I want to [be with you/hold you] forever|"
        "[she/he] is the love of my life|my dear, I think of you [all day/every night]|hold my hand and never let go|"
        "I love my [little sister/husband/wife] so much|you are my [sunshine/love/heart]|I fell in love with [him/her] at once|"
        "I kiss your letter every night|nobody is as dear to me as you|he gave me roses and a kiss|"
        "[my love/my dear/darling], [I want to kiss you/you are my life/hold me]|"
        "[all my heart/my heart] [is yours/belongs to you]|"
        "I [want/long] to [kiss/hold] [you/him/her]||"
        "I love him with all my heart|you are the love of my life|my dear, I want to hold your hand"
    ),
}
URGENCY = {
    "high": phrases(
        "the whole [office/network] is [offline/down]|water is running out of the wall right now|"
        "we need [help/a doctor] [immediately/right now]|"
        "the [server/line] is down[/ and nobody can work]|there is [smoke/fire/water] in the [kitchen/cellar/hall]|"
        "I need this within an hour|"
        "this cannot wait[/ any longer/ until tomorrow]|nobody can work since this morning|"
        "our data is gone and customers are waiting|"
        "emergency, the door is locked and a child is inside|it is [urgent/very urgent]|"
        "please [call me/come/send help] at once|"
        "[urgent/emergency], [the server is gone/there is smoke/we need you now]|"
        "[come/help] [at once/immediately], [it burns/customers wait]|"
        "it must be done [right now/at once]||"
        "the server is down and we need help at once|there is smoke in the office, it is urgent|"
        "this cannot wait, customers are waiting"
    ),
    "medium": phrases(
        "the [printer/copier/mouse] works only now and then|please [fix/check] it this week|one of two screens is broken|"
        "the [page/screen/computer] is a bit slow|I need [an answer/it] by [Friday/the end of the week]|the heating is weak|"
        "the report should be ready in a few days|my mouse loses its connection|it fails [about/only] once a [day/week]|"
        "please look at it when you are done with the server|we can work, but not well|the door closes badly|"
        "[this week/by Friday] [is soon enough/would be good]|it [works/runs], but [not always/it is a bit slow]|"
        "[can you/please] [repair/fix] the [screen/door/heating] [this week/in a few days]||"
        "please fix the printer this week|the screen is slow, I need an answer by Friday|it works, but it fails once a day"
    ),
    "low": phrases(
        "[no/there is no] hurry|whenever you [have time/like]|it is [not important/only a detail]|maybe next [month/year]|"
        "I only wonder how it works|"
        "just a small [wish/thing]|the color of the button could be nicer|there is a spelling mistake on the last page|"
        "some day we might need a new chair|it does not disturb me much|take your time[/, no hurry]|"
        "I have a question, it can wait|"
        "[this/my question] can wait[/ until next month]|[one/a] small [wish/question], [no hurry/not important]|"
        "[look at it/answer] [some day/whenever you like/next month]||"
        "it can wait, take your time|a small wish, whenever you have time|it is not important, maybe next month"
    ),
}
SPAM = {
    "spam": phrases(
        "you have won a [million dollars/new car]|click here to [claim your prize/win/get gold]|"
        "earn money [from home/in bed] fast|"
        "cheap pills without a doctor|your account will be closed, send your password now|lose ten kilos in a week|"
        "hot offer, only today, buy now|"
        "a prince wants to send you gold|free [phone/watch/trip] for the first hundred callers|"
        "double your [money/income] in one [day/week]|"
        "you are our lucky winner|act now and get a free [watch/phone]|"
        "[congratulations, you/you] won [a free phone/the lottery/a prize]|"
        "[click/buy/act] now, [free gold/only today/get rich fast]|"
        "[lucky winner/dear winner], [a million/your prize] waits for you||"
        "click here, you have won a free phone|you are the lucky winner of a million dollars|double your money fast, buy now"
    ),
    "not spam": phrases(
        "the [meeting/class] is moved to [three/Monday]|can you send me the [notes/pictures] from [Monday/the trip]|"
        "happy birthday from all of us|"
        "lunch [at noon/is ready]|I left my [keys/notes] at your place|here are the [pictures/notes] of our [trip/meeting]|"
        "thanks for [your help yesterday/the cake/the lunch]|the baby is asleep|"
        "please read the [draft/report] before [Friday/lunch]|"
        "I will be ten minutes late|grandmother says hello|do you have time for [a call/lunch]|"
        "[dinner/the trip] was moved to [noon/Monday]|"
        "[did you/can you] read my [letter/draft/report]|thanks, [the pictures are nice/see you on Monday]||"
        "lunch is moved to three|thanks for the pictures of the trip|can you read my notes before Monday"
    ),
}
LANGUAGE = {
    "English": phrases(
        "the [house/child/garden] is [big/small]|where is the [station/garden/child]|"
        "I would like [a coffee/the house/to go home]|"
        "good morning, my friend|we are going [home/to the station]|thank you very much|"
        "the child plays in the [garden/house]|what time is it|"
        "my name is [Tom/Anna]|I do not understand|[my/the] [friend/child] [is at home/plays]|"
        "I am going [to the house/to my friend]||"
        "where is my house|the child is going home|I would like to play"
    ),
    "Spanish": phrases(
        "la [casa/estacion] es [grande/bonita]|donde esta la [estacion/casa/silla]|quiero [un cafe/una silla/mucho]|"
        "buenos dias, mi [amigo/amiga]|"
        "vamos a la [casa/estacion]|muchas gracias|el [gato/amigo] duerme en la [silla/casa]|que hora es|"
        "me llamo [Carla/Bruno]|"
        "no entiendo nada|mi [amigo/gato] [esta en casa/quiere un cafe]||la silla es grande|donde esta mi amigo|quiero la casa"
    ),
    "French": phrases(
        "la [maison/gare/pomme] est [grande/petite]|ou est [la gare/le parc/le chat]|je voudrais un [cafe/chat]|"
        "bonjour, mon ami|"
        "nous allons [au parc/a la gare]|merci beaucoup|le chat dort [sur la chaise/dans le parc]|quelle heure est-il|"
        "je ne comprends pas|"
        "elle mange une pomme|mon [ami/chat] [est grand/dort]|[le chat/il] est [petit/dans la maison]||"
        "le parc est grand|ou est mon ami|je voudrais une pomme"
    ),
    "German": phrases(
        "das Haus ist [gross/klein]|wo ist [der Bahnhof/das Haus/die Katze]|ich moechte [einen Kaffee/schlafen]|"
        "guten Morgen, mein Freund|"
        "wir gehen [nach Hause/zum Bahnhof]|vielen Dank|die Katze schlaeft auf dem [Stuhl/Haus]|wie spaet ist es|"
        "ich heisse [Nils/Anna]|"
        "das verstehe ich nicht|[mein Freund/die Katze] ist [gross/nicht da/zu Hause]|ich [gehe/will] nach Hause||"
        "der Bahnhof ist gross|wo ist mein Freund|ich moechte nach Hause"
    ),
    "Italian": phrases(
        "la casa e molto [bella/grande]|dove si trova [la stazione/il mare/la casa]|vorrei un [bicchiere di acqua/gatto]|"
        "buongiorno, amico mio|"
        "andiamo [al mare/a casa]|mille grazie|il gatto dorme sulla [sedia/casa]|che ore sono|mi chiamo [Bruno/Carla]|"
        "non capisco niente|"
        "il [gatto/bicchiere] e molto [bello/piccolo]|vorrei [dormire/andare a casa]||"
        "il mare e molto bello|dove si trova il gatto|vorrei andare al mare"
    ),
}
GOODS = {
    "clothing": phrases(
        "[wool/red/long] scarf|[blue/short/warm] jacket|cotton [shirt/skirt]|winter [coat/boots]|"
        "leather [boots/gloves/jacket]|summer dress|"
        "black trousers|warm [socks/gloves]|rain [hat/coat]|silk tie|[long/blue] skirt|running shoes|"
        "[pair of/black] [socks/shoes]|"
        "[dress/shirt/coat] [made of wool/made of cotton/for winter]||winter jacket|wool socks|leather shoes|cotton dress"
    ),
    "furniture": phrases(
        "wooden [chair/bench]|oak [table/shelf]|book shelf|double bed|office [desk/chair]|leather sofa|kitchen [stool/chair]|"
        "glass cabinet|"
        "coffee table|garden bench|wardrobe with [mirror/double door]|rocking chair|"
        "[chair/sofa/armchair] [made of leather/with soft seat]|"
        "[desk/shelf/bed/wardrobe] [made of oak/for the bedroom]||oak desk|wooden shelf|leather chair|double wardrobe"
    ),
    "kitchen": phrases(
        "frying pan|[steel/soup] pot|tea [kettle/cup]|[bread/cheese] knife|set of [spoons/knives]|coffee [mug/cup]|soup bowl|"
        "[wooden/big] spoon|"
        "cake tin|pepper mill|baking tray|salad [plate/bowl]|[pan/pot/kettle] [made of steel/with lid]|"
        "[mug/spoon/knife] [for tea/for soup/for cake]||"
        "pan for soup|soup spoon|tea mug|cake knife"
    ),
    "electronics": phrases(
        "phone [charger/case]|gaming laptop|wireless [mouse/headphones]|digital camera|flat screen|radio with clock|"
        "small speaker|memory card|"
        "tablet computer|[battery/power] pack|headphones|video cable|[battery/cable/screen] for [laptop/phone/camera]|"
        "[loud/tiny] [speaker/radio]||"
        "wireless speaker|phone battery|laptop screen|camera cable"
    ),
    "garden tools": phrases(
        "[watering/big watering] can|iron [rake/fork]|flower [pot/box]|garden [hose/gloves]|bag of [seeds/soil]|"
        "grass [cutter/seeds]|plant food|"
        "small shovel|hedge scissors|wheelbarrow|bird house|rose fence|"
        "[shovel/rake/scissors] for [the garden/flowers/the hedge]|"
        "seeds for [flowers/grass/roses]||flower seeds|garden shovel|grass scissors|iron watering can"
    ),
    "toys": phrases(
        "teddy [bear/dog]|wooden [train/blocks]|toy [car/boat/robot]|puzzle with animals|doll [house/dress]|building blocks|"
        "paper kite|"
        "spinning top|card game|water pistol|jumping rope|rubber duck|[bear/duck/train/doll] [to play with/for children]|"
        "[game/puzzle/blocks] with [cards/animals/bears]||toy train|rubber bear|doll with blocks|animal card game"
    ),
    "food": phrases(
        "[white/fresh] bread|goat cheese|[apple/orange] juice|dark chocolate|olive oil|jar of [honey/olives]|"
        "[green/black] tea|tomato soup|"
        "bag of [rice/nuts]|orange jam|dried [beans/apples]|fresh eggs|[jam/honey/milk/beans] [from the farm/to eat]|"
        "[goat/sweet] [milk/cheese]||"
        "goat milk bread|jar of jam|bag of beans|dark honey"
    ),
}
GENRE = {
    "mystery": phrases(
        "a detective [looks for the missing ring/asks every guest/finds a secret]|who [killed/poisoned] the old [lord/butler]|"
        "a letter without a name leads to a secret|the butler [knows more than he says/hides something]|"
        "a body [is found/lies] in the [library/harbor]|"
        "the clues lead to the [harbor/library/lord]|every guest has something to hide|an inspector solves her last case|"
        "[the inspector/a detective] [follows/has] [the clues/no clue]|[secret letters/a body] and [no clue/a detective]||"
        "the detective looks for a body|the clues lead to the butler|a secret letter is found in the library"
    ),
    "romance": phrases(
        "two strangers fall in love [on a train/in Rome/by the sea]|she must choose between two men|"
        "a wedding brings [old lovers/them] together|"
        "he writes her a letter every day|a summer of love in [Rome/Paris]|the baker falls for the florist|"
        "their first kiss changes all|"
        "love finds them again after forty years|[a kiss/love] [at a wedding/in the rain]|"
        "[two lovers/old lovers] [kiss/marry] [at last/in spring]|"
        "[he/she] [loves/kisses] the [baker/stranger]||"
        "two old lovers meet in Rome|she falls in love at a wedding|he writes of their first kiss"
    ),
    "fantasy": phrases(
        "a [dragon/witch] guards a magic [sword/ring]|the young wizard learns [a spell/to fly]|elves leave the dying forest|"
        "a queen of ice wakes up|"
        "a boy finds a door to another world|the king sends a knight to the dark tower|a witch turns men into ravens|"
        "the last unicorn crosses the mountains|[a knight/the wizard] [fights/rides] a dragon|"
        "[magic/a spell] [opens/guards] the [tower/door]|"
        "the [witch/elves/wizard] [sing/know] [magic/old spells]||"
        "a wizard guards the magic door|the knight wakes a dragon|the witch learns a spell"
    ),
    "science fiction": phrases(
        "a ship is lost [between the stars/in space]|robots rule the [city/moon]|the crew [wakes up/lands] on Mars|"
        "an alien sends a signal|"
        "a machine can [read minds/think]|people live under the ice of a moon|a clone looks for his maker|"
        "time travel goes wrong|"
        "[aliens/robots] [land on/come from/take] [Mars/the moon]|"
        "a signal [from space/from Mars] [reaches the crew/wakes the robots]|"
        "[the machine/a clone] travels [to the stars/back in time]||"
        "robots send a signal from Mars|the crew is lost on an alien moon|a machine travels in time"
    ),
    "horror": phrases(
        "something [breathes/waits] under the bed|the dead [walk/come back] at midnight|a doll moves when nobody looks|"
        "no one leaves the house alive|blood drips from the [ceiling/wall]|a ghost [sings/screams] in the cellar|"
        "the children stare and do not blink|the grave is empty and the door is open|"
        "[a ghost/the dead doll] [stares/waits] [in the dark/at you]|"
        "[blood/a scream] [in the cellar/at midnight]|the dead [breathe/stare/scream]||"
        "the dead breathe in the cellar|a ghost stares at midnight|blood under the bed"
    ),
}
ACT = {
    "question": phrases(
        "where did you put the [keys/book]|how old is [your sister/the train]|who [opened the window/has the keys]|"
        "what do you want for [dinner/lunch]|"
        "why is the [door/shop] open|when does the [shop/station] close|which book is [yours/new]|do you like [tea/the book]|"
        "is it far to the station|can anyone hear me|[where/why/when] [did she go/do you eat]|[what/who] [is that/do you see]|"
        "[where are/what are] [the keys/your books]||who opened the shop|where is your sister|why do you want the keys|"
        "what book do you like"
    ),
    "request": phrases(
        "please close the [window/shop/box]|bring me [a glass of water/the keys/the salt]|hand me the [salt/book]|"
        "come here, please|"
        "wait for me [at the door/here]|please turn down the music|help me with this box|give me your [hand/keys]|"
        "please write to your mother|"
        "sit down, please|[open/close/clean] the [window/box], please|[please/now please] [give/hand] [me/her] the [box/glass]|"
        "wait [here/a moment], please||please bring me the box|close the door, please|give me the salt|wait for your mother"
    ),
    "statement": phrases(
        "the shop [closes/opens] at six|my sister is ten years old|the keys are on the [table/box]|"
        "we had [soup/tea] for dinner|"
        "the [window/door/shop] is open|this book belongs to [Tom/my sister]|the station is near|I like tea with milk|"
        "the train was full|"
        "two and two make four|[my/the] [keys/books] are [new/in the shop]|[we/they] [had lunch/ate] at [noon/six]|"
        "the [train/shop] is [late/near the door]||the station is open|we had tea at six|my book is on the table|"
        "the shop is near the station"
    ),
    "promise": phrases(
        "I will call you [tomorrow/at noon, I promise]|I promise to [be on time/help you/write]|"
        "you will get your [money/book] on Friday|"
        "I will never be late again|we will finish it tonight, you have my word|I give you my word|"
        "I will help you with the box, I promise|"
        "trust me, it will be done by noon|I will bring it back, for sure|"
        "[you have my word/I promise], [I will come/it will be done]|"
        "[I/we] promise [that we come/to finish it/to bring it back]|[I/we] will [be there/pay you/help], [for sure/trust me]||"
        "I promise to call you on Friday|you have my word, I will be on time|we will help you tonight, I promise"
    ),
}
DIRECTION = {
    "past": phrases(
        "we [walked/went] to the [lake/shop]|she [wrote/read] a [letter/book]|he had a [dog/cat]|they were [tired/happy]|"
        "I saw [him/her] yesterday|"
        "the train left an hour ago|last year we lived in [Oslo/Rome]|the shop was [closed/open]|she [baked/ate] a cake|"
        "it rained|"
        "[yesterday/last week] [they walked home/I had a letter/she was tired]|"
        "[he/the dog] [saw/had] [a train/a cake] last year||"
        "last year she had a dog|they walked to the train|I saw a letter yesterday"
    ),
    "present": phrases(
        "we are [walking/going] to the [lake/shop]|she is [writing/reading] a [letter/book]|he has a [dog/cat]|"
        "they are [tired/happy]|I see [him/her] now|"
        "the train is leaving|we live in [Oslo/Rome] at the moment|the shop is [closed/open]|she is [baking/eating] a cake|"
        "it is raining|"
        "[now/at the moment] [they are walking home/I have a cake/she is tired]|"
        "[he/the dog] [is walking/sees a train] [now/at the moment]||"
        "she has a letter|they are walking now|the dog is tired"
    ),
    "future": phrases(
        "we will [walk/go] to the [lake/shop]|she is going to [write/read] a [letter/book]|he will have a [dog/cat]|"
        "they will be [tired/happy]|"
        "I will see [him/her] tomorrow|the train will leave in an hour|next year we will live in [Oslo/Rome]|"
        "the shop will be [closed/open]|"
        "she will [bake/eat] a cake|it will rain|[tomorrow/next week] [they will walk home/I will have a cake/it will close]|"
        "[he/the dog] [will see a train/will walk] [tomorrow/in an hour]||"
        "next year she will have a dog|they will walk tomorrow|the shop will close in an hour"
    ),
}
DANGER = {
    "safe": phrases(
        "the [floor/path] is [dry/clean/flat]|the [stove/oven/gas] is off|all [doors/windows] are [locked/closed]|"
        "the path is wide and even|"
        "the water is clean|everyone has a helmet|the ladder stands firm|the fire is out|the dog is on a leash|"
        "the bridge was [tested/repaired]|"
        "[the ladder/the cable/the brake] was [tested/repaired] [today/and is fine]|"
        "[the stove/the fire] is [cold/off/out][/ and the door locked]||"
        "the stove is off and the fire is out|the floor is even|all doors were tested"
    ),
    "dangerous": phrases(
        "the cable is broken and wet|a knife lies on the [edge/floor]|the stove is on and nobody is home|"
        "the ice is [thin/broken]|the brakes fail|"
        "the [ladder/bridge] shakes|there is [glass/oil] on the floor|gas is leaking|the [bridge/floor/roof] has a hole|"
        "the dog bites|"
        "[the brake/the bridge/the stair] is [broken/loose]|a broken [ladder/cable] [stands/lies] [here/in the water]|"
        "there is a hole in the [floor/bridge]||the ladder is broken|a cable lies on the wet floor|the ice has a hole"
    ),
}

MORE = blocks_of("labels")


def with_more(noun: str, frames: Phrases, labels: dict[str, Phrases]) -> Family:
    """The family with the phrases of labels.txt among the known ones."""
    return Family(
        noun,
        frames,
        {label: Phrases(options.known + MORE[f"{noun}: {label}"], options.held) for label, options in labels.items()},
    )


FAMILIES = (
    with_more("team", REQUEST, TEAM),
    with_more("intent", COMMAND, ASSISTANT),
    with_more("topic", REPORT, TOPIC),
    with_more("emotion", SENTENCE, EMOTION),
    with_more("urgency", REQUEST, URGENCY),
    with_more("type", SENTENCE, SPAM),
    with_more("language", BARE, LANGUAGE),
    with_more("category", BARE, GOODS),
    with_more("genre", REPORT, GENRE),
    with_more("kind of sentence", BARE, ACT),
    with_more("time", BARE, DIRECTION),
    with_more("safety", REPORT, DANGER),
)
TEAMS, INTENTS, TOPICS = FAMILIES[0], FAMILIES[1], FAMILIES[2]
