"""What reviews say: whole phrases by label, and phrases composed of an aspect and a judgement of it.

A part of every list, and a fifth of the composed phrases, is held back for the test split.
"""

from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.phrases import is_held, phrases, say
from rtlang.model.embedded.text_files import blocks_of
from rtlang.model.embedded.words import Draw

MORE = blocks_of("opinions")

OPINIONS = {
    "positive": phrases(
        "I love it|it works great|the quality is excellent|I am very happy|best purchase this year|it was worth it|"
        "it arrived early and looks beautiful|my family enjoys it|my family enjoys it every day|highly recommended|"
        "it is comfortable and strong|the staff was kind|a wonderful film|the food was delicious|great service|"
        "I would buy it again|it made me smile|simply perfect|amazing value|the staff was kind and the food was fresh|"
        "I use it every day and I love it|my friends love it too|everything was perfect|it is even better than I hoped|"
        "I could not be happier|it is the best I have ever had|I will come back soon|five stars|we had a great time|"
        "it does exactly what I wanted|it was a pleasure|I am so glad I bought it|what a lovely gift|very well made|"
        "it is easy to use and looks good|the children are happy with it|I enjoyed every minute|a real joy|"
        "it is worth every cent|I can only recommend it|it still works like new after two years|thank you for this|"
        "no complaints at all|nothing to complain about|it is not bad at all|I was surprised how good it is|"
        "it saved me a lot of time|fast delivery and friendly people|the room was clean and quiet|well done|"
        "we loved every part of it|it never failed me|I did not expect it to be this good|it makes my life easier|"
        "a great story with a good ending|I laughed a lot|the view was beautiful|we will visit again|I am impressed|"
        "it fits very well|good value for the money|all my friends want one now|it feels strong and well made|"
        "[I/we] [really/truly/simply] [love/enjoyed/like] [it/all of it/every part]|"
        "it [works/fits/looks/tastes] [great/very well/beautiful/like new]|"
        "[I am/we are/my family is] [so/very/really] [happy/pleased/glad] [with it/that we came/about it]|"
        "[what a/such a] [good/great/lovely/kind] [thing/idea/team]|"
        "[the best/one of the best] [things/gifts/films/places] [I know/I ever had/of all]|"
        "[I/we] [recommend/will recommend] it to [everyone/my friends/all]|"
        "[it was/well] worth [the money/it/the wait/every minute]|"
        "[no/not one] [problem/complaint/mistake] [so far/in two years/at all]|"
        "[I/we] would [come/visit/buy/order] again [soon/at once/any time]|"
        "[kind/friendly] people, [good food/fast service/clean rooms]|"
        "it made [me/us/my mother/the children] [happy/smile/laugh]|[never boring/never a dull minute/full of joy and fun]|"
        "[delicious/fresh/tasty] food and [kind/fast] service|"
        "[a/the] perfect [evening/gift/choice] [for us/for my family/in every way]|"
        "[nothing/no day/no hour] was [dull/wasted/a mistake]|it [has/had] [charm/style/heart/everything one could want]|"
        "[my/our] [children/friends/guests/neighbors] [love/enjoy/praise/admire] it|it [beats/tops] all the others|"
        "[I/we] [smiled/laughed] [the whole time/from start to end/all evening]|it is [a treasure/a gem/a dream/heaven/gold]|"
        "[I/we] [cannot/could not] [stop smiling/praise it enough/find a fault/put it down]|[bravo/hurray/hats off/well done]|"
        "[good/warm/tasty] food at a [fair/good] price|[I was/we were] [thrilled/delighted/touched/amazed/charmed]|"
        "[never/not once] [did it fail/did it break/was I let down]|[still/again] [as good as/better than] on the first day|"
        "[more/much more] than [I/we] [hoped for/asked for/paid for]|[clean/quiet/bright] rooms and a [warm/kind] welcome|"
        "I am [glad/happy] [I bought it/we went there/that I have it]||"
        "we are very happy with it|I would recommend it to all my friends|it looks even better at home|I love every part|"
        "the best film of the year|kind people and delicious food|it works like new|a perfect gift|good and fast service|"
        "I am glad I came|no problems at all|it made my family happy|I will buy it again soon|worth all the money|"
        "we enjoyed the view and the food|it was never boring",
        MORE["positive"],
    ),
    "negative": phrases(
        "I hate it|it broke after a day|the quality is terrible|I am very disappointed|a waste of money|it was useless|"
        "it arrived late and damaged|it is too noisy|I want a refund|it feels cheap and weak|the staff was rude|"
        "a boring film|the food was cold|awful service|I would not buy it again|it made me angry|simply bad|"
        "the worst I have seen|the soup was cold and the staff was rude|it stopped working after a week|never again|"
        "I do not like it|I do not recommend it|it is not good at all|it is not worth the money|not what I ordered|"
        "it was dirty and smelled bad|we waited two hours for cold food|nobody answered my questions|one star|"
        "I sent it back the next day|it looks nothing like the picture|it is broken again|the box came empty|"
        "I regret buying it|save your money|stay away from this|what a disaster|it fell apart in my hands|"
        "my family was not happy with it|it could not be worse|I was bored the whole time|I fell asleep in the film|"
        "the ending made no sense|it is too expensive for what you get|the room was dirty and loud|very poorly made|"
        "it does not do what they promise|it hurts my back|it never worked|I will not come back|a complete failure|"
        "nobody in my family likes it|they never answered my letter|it is slow and it crashes|I lost all my data|"
        "the worst service in town|it is ugly and too small|I expected much better|it was a mistake to buy it|"
        "there is nothing good about it|I wish I had not bought it|it leaks and it is loud|the color came off|"
        "[I/we] [really/truly/simply] [hate/dislike/regret] [it/all of it/every part]|"
        "it [works/fits/looks/tastes] [badly/terrible/awful/cheap]|"
        "[I am/we are/my family is] [so/very/really] [angry/disappointed/unhappy] [with it/that we came/about it]|"
        "[what a/such a] [bad/rude/ugly/weak] [thing/idea/team]|"
        "[the worst/one of the worst] [things/gifts/films/places] [I know/I ever had/of all]|"
        "[I/we] [would not recommend/warn everyone of] it|"
        "[it was/well] not worth [the money/it/the wait/a minute]|"
        "[many/only] [problems/complaints/mistakes] [so far/from the start]|"
        "[I/we] would [never/not] [come/visit/buy/order] [here/this/it] again|"
        "[rude/unfriendly] people, [bad food/slow service/dirty rooms]|"
        "it made [me/us/my mother/the children] [angry/sad/cry]|[boring/dull] [from start to end/every minute]|"
        "[cold/old/tasteless] food and [rude/slow] service|"
        "a waste of [my time/an evening/good money]|I [regret/am sorry] that [I bought it/we went there/I came]|"
        "[please/I just want to] [give me/get] my money back|"
        "[it/everything] [broke/crashes/smelled bad/is too loud/was broken] [all the time/again/on the first day]|"
        "[nothing/no part of it] was [fun/clean/fresh/as promised]|it [has/had] [no charm/no style/many faults/cracks]|"
        "[my/our] [children/friends/guests/neighbors] [hate/dislike/laugh about/complain about] it|all the others are better|"
        "[I/we] [cried/yawned/suffered] [the whole time/from start to end/all evening]|it is [junk/trash/garbage/a nightmare/a fraud]|"
        "[I/we] [cannot/could not] [wait to leave/find one good thing/use it/sleep there]|[shame on them/boo/yuck/no thanks]|"
        "[cold/burnt/stale] food at a [mad/high] price|[I was/we were] [shocked/let down/cheated/annoyed/bored stiff]|"
        "[it/the thing] [failed/broke/died] [at once/on day one/within a week]|[already/again] [broken/torn/dead] after [a day/a week]|"
        "[less/much less] than [I/we] [hoped for/asked for/paid for]|[dirty/noisy/dark] rooms and a [cold/rude] welcome|"
        "[nothing/not one thing] [works/worked/was good] [here/there/as it should]|"
        "[it is/how] [loud/weak/ugly] and [far too expensive/useless/cheap]|not [one good minute/a joy/what I enjoy]||"
        "I will never buy it again|the worst film of the year|rude people and cold food|it was broken when it arrived|"
        "I did not enjoy a minute of it|I want my money back|it is loud and ugly|a cheap and weak thing|"
        "we will not visit again|"
        "the food smelled bad|it crashes every day|it was a waste of time|nothing worked|we were very disappointed|"
        "I regret coming here|it is not good and too expensive",
        MORE["negative"],
    ),
    "neutral": phrases(
        "it is okay|it does the job|nothing special|it is average|it is what I expected|not good and not bad|"
        "it is fine for the price|I have no strong opinion|it is neither good nor bad|it is a normal product|so so|"
        "it came on Monday|I have used it twice so far|it is like all the others|I bought it for my brother|"
        "it has two buttons and a handle|it was delivered in a brown box|I have not tried it yet|it is made of wood|"
        "some like it and some do not|it could be better and it could be worse|I am not sure what to think|"
        "it is acceptable|there are better ones and there are worse ones|I neither like it nor hate it|it is usable|"
        "it is neither fast nor slow|I got what I paid for|we stayed for one night|the film is two hours long|"
        "it was as expected|no surprises|it is an ordinary one|I do not feel strongly about it|it is so so|three stars|"
        "the shop is next to the bank|it comes in red and blue|I use it now and then|it is a standard model|"
        "it is all right|we had soup and bread|it works as described|they open at nine|I might keep it|"
        "the book has ten chapters|it is about the same as my old one|medium quality|we ate there on Friday|"
        "it is not special but it works|it is good enough|I cannot say much about it|it weighs two kilos|"
        "there is not much to say|it is a simple thing|I have seen better and I have seen worse|not great and not terrible|"
        "it needs two batteries|I ordered it last week|it is just okay|average quality for an average price|"
        "it is [just/simply/quite] [okay/fine/average/normal]|[not/neither] [great/fast/good], [not/nor] [terrible/slow/bad]|"
        "[it/this] is [like/the same as] [my old one/others/the last one]|"
        "[I/we] [bought/ordered/got] it [last week/in May/for the office]|"
        "[it/the box] [has/comes with] [three buttons/two parts/a brown box/a cable]|"
        "[I/we] have not [used/tried/opened] it [yet/so far/often]|"
        "[we stayed/it took/the show is] [for two hours/three days/one night]|"
        "[there are/one finds] [better and worse ones/others like it]|"
        "[I might/maybe I will] [try/use/keep] it [again/or not/some day]|"
        "[some/a few] [good/nice] things, [some/a few] [bad/weak] ones|it is [one of many/in the middle/about average/no more no less]|"
        "[I/we] [went/were] there [on Sunday/once/last month]|[it has/there are] [a blue lid/two rooms/four chapters/a short menu]|"
        "[I/we] [neither/do not] [praise it nor blame it/miss it or need it]|it [costs/weighs] [as much as others/about a kilo]|"
        "[it/that] [will do/is enough/is as they say/is as I thought]|[no/without] [praise/thrill] and [no/without] [blame/anger]|"
        "[nothing/not much] [new/special/to add/more to say about it]|okay [for the price/I think/for now]|"
        "an [ordinary/average] [film/place/thing], [no more/nothing to add]||"
        "it is neither great nor terrible|it is okay for the price|it comes in a brown box|I have not used it yet|"
        "one finds better ones|it is an average film|I bought it last week|it is like my old one|I might try it again|"
        "it is just fine|nothing new|we stayed for two hours|it is a normal one|it has three buttons|not much to say about it",
        MORE["neutral"],
    ),
}
ASPECTS = {
    "product": words(
        "quality price color size battery screen handle design sound shape material surface button manual delivery"
    ),
    "place": words(
        "food service staff room bed breakfast view location soup coffee dessert music menu atmosphere kitchen"
    ),
    "story": words("story plot ending acting music cast dialogue humor beginning hero picture idea style pace"),
    "app": words("design speed menu login search update support layout sound help map chat"),
}
SUBJECTS = {
    "place": words(
        "restaurant hotel cafe museum bar shop bakery cinema zoo gym hostel market park school clinic theater"
    ),
    "story": words("film book show series novel game play movie comic episode"),
    "app": words("app website program game tool update"),
}
GOOD = phrases(
    "excellent|great|wonderful|fantastic|lovely|amazing|perfect|very good|really nice|superb|outstanding|impressive|"
    "better than expected|not bad at all|just right|brilliant|a delight|really good|beyond praise|so good|so nice|"
    "marvelous|splendid|delightful|terrific|charming|first class|flawless|"
    "a dream|a joy|a treat|top|heavenly|great fun|above average|worth it|better than ever||"
    "really excellent|not so bad|so lovely|very nice|simply delightful|better than I thought",
    MORE["positive words"],
)
BAD = phrases(
    "terrible|awful|bad|horrible|poor|disappointing|very bad|really poor|dreadful|annoying|a disaster|unacceptable|"
    "worse than expected|not good at all|far too bad|a joke|a shame|really bad|below average|so bad|not good|"
    "pathetic|useless|lousy|miserable|"
    "ghastly|a pain|a mess|a nightmare|unbearable|full of faults|third class|hopeless|shabby|worthless|worse than ever||"
    "really terrible|so poor|very disappointing|not great at all|really awful|worse than I feared",
    MORE["negative words"],
)
PLAIN = phrases(
    "okay|average|fine|ordinary|normal|acceptable|as expected|so so|nothing special|neither good nor bad|standard|"
    "all right|not special|medium|as described|just okay|usual|in the middle|"
    "passable|moderate|typical|one of many|so so at most|no surprise|neither great nor awful||"
    "only okay|fairly run-of-the-mill|fine but not special|rather usual",
    MORE["neutral words"],
)
JUDGEMENTS = {"positive": GOOD, "negative": BAD, "neutral": PLAIN}
FRAMES = {
    "positive": phrases(
        "I love the {}|I like the {} a lot|the {} made me happy|what a great {}|I have no complaints about the {}|"
        "the {} could not be better|I was impressed by the {}|thanks for the lovely {}|the {} is the best part|"
        "the {} is worth the money|I enjoyed the {}|[we/I] [liked/loved/enjoyed] the {} [very much/most/so much]|"
        "[happy/glad] [with/about] the {}|[what a/such a] [lovely/good/perfect] {}|"
        "the {} [made us smile/works great/is my favorite]|[really nice/great/I enjoyed it]: the {}||I really enjoyed the {}|"
        "what a nice {}|I am happy with the {}",
        MORE["positive frames"],
    ),
    "negative": phrases(
        "I hate the {}|I do not like the {}|the {} made me angry|what a terrible {}|I am not happy with the {}|"
        "the {} could not be worse|I was disappointed by the {}|nobody needs such a {}|the {} is the worst part|"
        "the {} is not worth the money|the {} [made us sad/never worked/is a waste]|[what a/such a] [bad/poor/weak] {}|"
        "[unhappy/angry] [with/about] the {}|"
        "[we/I] [hated/disliked/regret] the {} [very much/most/from the start]|[so awful/bad/I hate it]: the {}|"
        "I did not enjoy the {}||I really hate the {}|what an awful {}|I regret the {}",
        MORE["negative frames"],
    ),
    "neutral": phrases(
        "the {} is like any other|I did not notice the {}|about the {} I have no opinion|the {} is what you would expect|"
        "there is nothing to say about the {}|I have seen better and worse than the {}|the {} neither helped nor hurt|"
        "the {} does the job|[I/we] have no [strong/clear] [view/feeling] on the {}|"
        "[there is/I have] [nothing/not much] to [say/add] on the {}|"
        "[so so/rather average/not much to say]: the {}|the {} is [neither good nor bad/quite okay]|"
        "[an ordinary/a normal/a standard] {}||I have no strong opinion about the {}|there is not much to say about the {}",
        MORE["neutral frames"],
    ),
}
OPPOSITE = {"positive": "negative", "negative": "positive"}
TURNS = phrases(
    "{other}, but in the end {own}|{other}. Still, {own}|although {other}, {own}|{other}, but {own} and that counts|"
    "first {other}, then I saw that {own}|{other}, yet overall {own}|"
    "[/yes, /at first ]{other}, [but/and yet] [now/by now/all in all] {own}|"
    "[even if/though/while] {other}, {own}|{other}[. But/. Yet/; however,] {own}||{other}, but overall {own}|"
    "{other}, yet in the end {own}",
    MORE["turns"],
)


def domain(draw: Draw) -> tuple[str, str]:
    """What is reviewed: its kind and its name."""
    kind = draw.pick(("product", "product", "place", "story", "app"))
    return kind, draw.item() if kind == "product" else draw.pick(SUBJECTS[kind])


def judgement(draw: Draw, label: str, kind: str) -> str:
    """One clause: a whole phrase, or an aspect of the thing and what is thought of it."""
    chance = draw.random.random()
    if chance < 0.45:
        return say(draw, OPINIONS[label])
    aspect = draw.pick(ASPECTS[kind])
    if chance < 0.6:
        return say(draw, FRAMES[label]).format(aspect)
    options = JUDGEMENTS[label]
    for _ in range(20):
        text = f"the {aspect} {draw.pick(('is', 'was'))} {draw.spoken(draw.pick(options.known))}"
        if is_held(text) == (draw.templates == "test"):
            return text
        aspect = draw.pick(ASPECTS[kind])
    return f"the {aspect} is {say(draw, options)}"


def verdict(draw: Draw, label: str, kind: str) -> str:
    """One or two clauses of a label; at times the opposite is granted first."""
    own = judgement(draw, label, kind)
    chance = draw.random.random()
    if label in OPPOSITE and chance < 0.12:
        return say(draw, TURNS).format(other=judgement(draw, OPPOSITE[label], kind), own=own)
    if chance < 0.4:
        other = judgement(draw, label, kind)
        if other != own:
            return f"{own}{draw.pick((' and ', ' and ', ', and ', '. ', '; '))}{other}"
    return own


def mixed(draw: Draw, kind: str) -> str:
    """One good and one bad side, in either order."""
    sides = [judgement(draw, "positive", kind), judgement(draw, "negative", kind)]
    first, second = draw.shuffled(sides)
    return f"{first}{draw.pick((', but ', ' but ', ', however, ', '. On the other hand '))}{second}"
