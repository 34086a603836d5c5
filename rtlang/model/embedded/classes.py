"""Families of labelled phrases: what messages of a class say. A part of each list is held back for the test split.

A family has a noun for what its labels are (`topic`, `intent`) and a form of its phrases: clauses that stand inside of
sentences, or whole sentences. Phrases and frames are composed of parts with choices, so that the words that carry a label occur in
many constructions.
"""

from dataclasses import dataclass

from rtlang.model.embedded.phrases import Phrases, phrases


@dataclass(frozen=True, slots=True)
class Family:
    """Labels of one kind. `frames` take a phrase in the field `{}`, a name in `{name}`; `{cap}` is the phrase, capital first."""

    noun: str
    frames: Phrases
    labels: dict[str, Phrases]


REQUEST = phrases(
    "[Hi/Hello/Hey/Hi there], {}.|{cap}. Please help[, thanks/], {name}.|Hello, [I am/this is/it is] {name} and {}.|{cap}!|"
    "{cap}.|"
    "{cap}[./!] [Can you/Could you/Please] [help/look into it/tell me more][?/.]|[Good morning/Good day/Dear all], {}. {name}|"
    "Dear [team/all/sir or madam], {}. [Regards/Kind regards/Best wishes], {name}|[Hello/Hi], {}. Can you help?|"
    "{cap}. What [can/should] I do?|My name is {name}. {cap}.|[Sorry to bother you/I am sorry], but {}.|{name} here: {}.|"
    "Message from {name}: {}.|[I have a question/One more thing/Just so you know]: {}.|"
    "{cap}. [Thanks/Thank you/Cheers/Bye], {name}|"
    "{name} [says/told us/called and said]: {}.|As I said [before/yesterday/on the phone], {}.|"
    "[Well/So/Now/Okay], {}. {name}|{}||"
    "Good evening, {}. Yours, {name}|Hello team, {}. Thank you, {name}|{name} writes: {}."
)
REPORT = phrases(
    "{cap}.|{name} [said/told me/thinks/wrote] that {}.|[Today/Last night/This week/Again] {}.|"
    "I [read/think/know/saw] that {}.|"
    "{cap}, [said/says/wrote] {name}.|[News/Report/Note/Update]: {}.|Yesterday I heard that {}.|"
    "[In short/In brief/By the way]: {}.|"
    "{cap}!|[They say/It is said/Everyone knows] that {}.|[Well/So/And], {}.|{name}: {}.|{}|"
    "[He/She] [told/informed] {name} that {}.||"
    "{name} has told us that {}.|We heard that {}.|It says here that {}."
)
COMMAND = phrases(
    "{cap}|{cap}.|{cap}, please.|[Hey/Okay/Well], {}.|[Hi/So/And], {}[./!]|{name} asks: {}.|[OK/Right], {}|"
    "{cap}[!/ now./ for me.]|"
    "[Please/Quick,] {}|[I am/This is] {name}, {}.|{cap}. [Thank you/Thanks a lot/That is all].|"
    "{name} [says/wants this]: {}.|{}||"
    "Hello, {}.|{cap}, thanks.|Now {}."
)
SENTENCE = phrases(
    '{cap}[./!]|{cap}.|{name} [said/says/whispered]: "{cap}."|{name}: {cap}.|{cap}, said {name}.|[Note/Message/Text]: {cap}.|'
    '"{cap}", [said/wrote] {name}.|[From/By] {name}: {cap}.|{}||{name} wrote: "{cap}."|"{cap}."'
)
BARE = phrases("{}|{cap}|{cap}.|[Text/Line]: {}||{}.")

TEAM = {
    "billing": phrases(
        "[I was/we were/you have/my card was] charged [twice/two times/again/for nothing/without a reason]|"
        "[my/the/our/your last] [invoice/bill] [is/was/looks/must be] [wrong/too high/not right/far too high]|"
        "how [do/can/should] I pay [my/the/this] [bill/invoice]|there is an extra [fee/charge/cost] on my [card/account/bill]|"
        "I [need/want/would like] a [receipt/bill] for [my/the last] payment|"
        "I do not understand [my/the/this] [bill/invoice/charge]|"
        "can I pay [next month/later/in two parts/by card]|the invoice [has/shows] the wrong [name/amount/sum]|"
        "my payment [did not go through/failed/was not accepted]|why do I [pay/have to pay] more [this month/than before]|"
        "you charged [my card/me] [again/too much/a fee]|[please/can you] [check/correct/send] [my/the] [invoice/bill]|"
        "I [already/have] paid [this/the] [bill/invoice], but [you ask again/I got a reminder]|"
        "[the amount/the sum/a charge] on my [bill/invoice/card] is [wrong/too much/not mine]|"
        "I [see/found] a payment that I did not make|"
        "[this month/in May] the [bill/fee] was [too much/double]||"
        "my bill shows an extra charge|I was charged too much this month|I need an invoice for my payment|"
        "my card payment is wrong"
    ),
    "shipping": phrases(
        "my [package/order/parcel] [did not come/is still not here/never came/has not come yet]|"
        "where [has/did] my [package/parcel] [gone/go]|"
        "where [are/is] [my order/the things I ordered]|[can/could] you deliver [faster/today/to my office]|"
        "the tracking [number/page] does not work|please change the delivery address|"
        "[when/on which day] [will/does] my [order/parcel] arrive|"
        "the [package/parcel/order] is [late/a week late/lost]|the driver did not find [my house/the address/us]|"
        "my [order/package] was [sent/delivered] to the wrong [city/address/house]|how long does [the delivery/shipping] take|"
        "can I [pick up/collect] [the/my] [package/order]|it was never [delivered/sent]|"
        "[the/my] [delivery/shipment] [should have come/was promised for] [on Monday/last week], [but it is not here/where is it]|"
        ""
        "has my [order/parcel/package] been [sent/shipped] yet|I [am waiting/still wait] for my [delivery/package/order]|"
        "nothing has arrived [so far/yet]||my order has not arrived|where is my package|the delivery is late|"
        "when will the package be delivered"
    ),
    "returns": phrases(
        "I [want/have] to send [it/this/the shoes] back|how [do/can] I return [this item/it/the lamp]|"
        "I [need/want/ask for] a refund for [a/this] broken [item/cup]|[the wrong/a wrong/another] item [came/was in the box]|"
        "can I exchange it for [another size/a new one/a blue one]|"
        "the [shoes/boots] are too [small/big] and I want another [size/pair]|"
        "it does not fit[/, I want to give it back]|I changed my mind and want to [return it/give it back/send it back]|"
        "the [cup/vase/item] was broken when I opened the box[/, I want a new one]|"
        "where do I send it back [to/when it does not fit]|"
        "I would like to [exchange/return/give back] [it/the coat]|how many days do I have to [return/exchange] it|"
        "I [sent/gave] the [shirt/lamp] back, when do I get [my refund/the money]|"
        "[please take/can you take] [it/the item] back|"
        "[this/the shirt] is the wrong [size/color], [can I exchange it/I want to return it]|"
        "what is your return [policy/address]||"
        "how do I send this item back|I want to exchange the broken item|can I return it for a refund|I would like another size"
    ),
    "technical": phrases(
        "the [app/program/game] [crashes/closes by itself/does not start]|the screen [stays/is/goes] [black/dark/blank]|"
        "I [cannot/can not/am not able to] connect to the [network/internet/printer]|"
        "the update [failed/stopped/did not install]|"
        "the [page/site] [does not load/loads forever]|it [shows/gives] an error [when I start it/again and again]|"
        "[after the update/since today] it [crashes/freezes/shows an error]|the [button/mouse/microphone] does nothing|"
        "my printer [is offline/does not print]|the sound does not work|it freezes [after a minute/all the time/when I type]|"
        "the [app/computer] is [very/far too] slow|the battery is empty after an hour|the camera shows only a black screen|"
        "I get an error [message/code] [in the app/on the screen]|the [printer/tablet/phone] cannot connect|"
        "the [screen/picture] [flickers/is frozen]|[there is a bug/something is broken] in the [app/program/update]||"
        "the app shows an error|the screen freezes|it crashes after the update|I cannot connect the printer"
    ),
    "account": phrases(
        "I [forgot/lost] my [password/user name]|how [do/can] I change my [email/user name]|"
        "please [delete/remove/close] my [profile/user]|"
        "I [cannot/can not] log in[/ any more/ since yesterday]|my [account/profile/user] [is/was] [locked/blocked]|"
        "I want to [update/change] my [user name/email]|someone else [uses/is in] my [account/profile]|"
        "I want to [close/open/delete] [my/an] account|"
        "how do I reset [my password/the password]|my [login/password/user name] does not work|"
        "I need to change [my phone number/the email] in my [profile/account]|I have two accounts|"
        "[the/my] password is [wrong/not accepted/too old]|[the/my] profile [shows/has] [an old/the old] [name/email/picture]|"
        "I [no longer have/do not get] the [email/code] to log in|[can you/please] [unlock/reset] my [account/login]||"
        "I cannot log in to my account|how do I change my password|please delete my account|my profile has the wrong email"
    ),
    "sales": phrases(
        "how much [is/does] the [big/small/red] one[/ cost]|do you [have/sell] it in [green/black/white]|"
        "I want to buy [ten/six/many] of them|"
        "is there a [discount/better price] for [schools/students/teams]|which [model/one] is [right for me/the best]|"
        "when will it be back in stock|do you sell [spare parts/gift cards/batteries]|can I get [an offer/a price]|"
        "what does the [new/latest] model cost|I would like to [order/buy] a hundred|is it on sale [next week/now/again]|"
        "do you have a [cheaper/bigger/newer] [one/model]|[please send me/I want] [an offer/a price list]|"
        "[what is/tell me] the price of the [new model/big one]|"
        "I [plan/hope] to buy a [new/second] one, [what do you offer/is there a discount]|"
        "is the [blue/old] one cheaper [than the new one/if I buy two]||"
        "how much is the new model|do you sell it in blue|is there a discount if I buy ten|which one is cheaper"
    ),
    "jobs": phrases(
        "I [want/would like] to work for [you/your shop]|do you have an open [position/job]|here is my [application/resume]|"
        "are you [looking for/hiring] [a cook/drivers/new people]|when can I start to work|"
        "I sent [my resume/you my resume] [last week/in May]|"
        "I am looking for [a job/work]|is the job still [open/free]|can I come for an interview|what is the salary|"
        "do you take students for the summer|I would like to [join/be part of] your team|"
        "[did you get/have you read] my [application/resume]|"
        "I [apply/am applying] for the [job/position] [of a cook/in your shop]|"
        "[the interview/my interview] was [on Monday/last week], did I get the [job/position]|"
        "which [position/job] is [open/free] [now/in summer]||"
        "is the position still open|I sent my application last week|I want to work as a cook|when is the interview"
    ),
    "feedback": phrases(
        "your new [page/shop/menu] [looks great/is lovely]|I have an idea for [a new button/your page/the shop]|"
        "your [staff/driver/team] was very [helpful/kind]|thank you for the [fast answer/good help]|"
        "I [think/feel] the [menu/page] should be [simpler/bigger]|I just want to say [well done/thank you]|"
        "it would be nice to have a [dark mode/search button]|the new [design/letter] is [easier/nicer] to read|"
        "please add [more colors/a map/more pictures]|my idea [is/would be] a map of all shops|keep up the good work|"
        "I [want to/must] praise your [driver/cook/service]|[praise/thanks] to your [staff/team], [they were great/well done]|"
        "[here is an idea/one idea]: [make the menu shorter/add a map/show more pictures]|"
        "I [like/love] [how you work/your new design]|"
        "the page [is easier now/was harder to read before]||"
        "I want to praise your staff|I have an idea for the menu|the new page is easier to read"
    ),
}
ASSISTANT = {
    "weather": phrases(
        "tell me the [weather/forecast] for [tomorrow/Monday/the weekend]|"
        "[check/look] if it will [rain/be sunny] [today/tomorrow]|"
        "show [the forecast/me the forecast] for [Rome/Oslo/tonight]|[say/tell me] how [cold/warm/windy] it is outside|"
        "[tell me if/do] I need an umbrella|give me the temperature in [Oslo/Paris]|"
        "look up the weather [for the weekend/in Lima]|"
        "find out if it will snow [tonight/on Friday/in the hills]|show me the wind speed|"
        "will [it rain/there be snow/there be a storm] [tomorrow/today/tonight]|"
        "what is the weather like [now/in Rome/outside]|[is/will] it [sunny/be cold/be hot] [in Oslo/tomorrow]||"
        "tell me if it will snow tomorrow|show the weather for tonight"
    ),
    "timer": phrases(
        "[set/start] a timer for [ten/five/twenty] minutes|start a timer for the [eggs/tea/rice/soup]|"
        "count down from [five/ten] minutes|"
        "remind me [in half an hour/at six/tonight]|wake me up at [seven/six/eight]|set an alarm for [six/noon/nine]|"
        "stop the [timer/alarm]|"
        "tell me when [twenty/ten] minutes have passed|set the clock to ring at [noon/six]|"
        "[ring/wake me] in [an hour/ten minutes]|"
        "[how long does/when does] the timer [still run/end]|I need [an alarm/a timer] [at seven/for the cake]||"
        "set a timer for the soup|set an alarm for seven|remind me in ten minutes"
    ),
    "music": phrases(
        "play [some jazz/a quiet tune/rock music]|play the next [song/album]|turn the [music/song] [up/down/off]|"
        "stop the [song/music]|"
        "play my favorite [album/band]|skip [this song/the song/to the next one]|find a song for [dancing/the party]|"
        "play something [quiet/loud/happy]|"
        "sing me a [song/lullaby]|put on [the radio/some music/my favorite band]|I want to hear [a song/some jazz/quiet music]|"
        "[repeat/play] [that/this] song [again/once more]|[what song/which band] is [this/playing]||"
        "play some quiet music|play my favorite song|skip the next song"
    ),
    "message": phrases(
        "tell [Ada/Tom/my brother] that I will be [late/there soon]|send a [message/mail] to [Tom/Ada/my mother]|"
        "write to my [brother/sister/boss] that [dinner is ready/I am late]|text my boss that I am [sick/late]|"
        "answer [Nora/him] with yes|"
        "send [Max/my sister] a note|inform my mother that I am [home/late]|write an email to [the school/my boss]|"
        "reply to the last message|"
        "let [Tom/my boss/my mother] know that [I am home/we are late/I am sick]|"
        "[forward/send] this [letter/picture] to [Nora/my brother]|"
        "[ask/text] [Ada/Max] if [she/he] [is home/can come]||"
        "send a message to my brother|tell my boss that I am home|write to Tom that I am late"
    ),
    "booking": phrases(
        "book a table [for four/by the window/for tonight]|reserve a room for [two nights/Monday]|book a flight to [Rome/Oslo]|"
        "get [me/us] two tickets for the [concert/film/zoo]|reserve a seat [by the window/in the train]|"
        "book a train to [Oslo/Rome] for Monday|"
        "find a hotel [near the sea/for two nights]|cancel my [table/room/flight] [for tonight/in Rome]|book a taxi for nine|"
        "[I need/find me/get me] a [room/hotel] [in Rome/for four nights]|"
        "[reserve/book] [two seats/three tickets] [to Rome/for Friday]|"
        "[is there/get me] a [table/flight] [free tonight/for six]||"
        "book a room for four nights|reserve a table by the window|get me two tickets to Rome"
    ),
    "shopping": phrases(
        "add [milk/tea/butter] to my list|put [eggs/bread/milk] on the shopping list|order more [paper/coffee/bread]|"
        "buy a new [lamp/broom]|"
        "remove [bread/milk] from the list|what is on my shopping list|order the same [coffee/tea] again|"
        "add six [apples/eggs] to my cart|"
        "buy two [bars of soap/bottles of milk]|we need [more milk/bread/six eggs][/, put it on the list]|"
        "[take/cross] [the eggs/milk] off [my/the] list|[empty/show] my [cart/shopping list]||"
        "add bread to the shopping list|order more milk|put six eggs on my list"
    ),
    "translation": phrases(
        "translate [good morning/this word/the menu] into [French/Spanish]|say [thank you/good night] in [Spanish/German]|"
        "what is the [German/Italian/French] word for [bread/house]|how do you say [house/good morning] in [Italian/French]|"
        "translate this [letter/text] into [English/German]|what does this [French/Italian] word mean|"
        "say hello in [four/two] languages|"
        "put this text into [Spanish/Italian]|[I need/give me] this [text/sentence] in [German/Italian/English]|"
        "what is thank you in [French/German]||translate thank you into Italian|say good morning in German"
    ),
    "math": phrases(
        "add [twelve and seven/five and nine/two to eight]|what is half of [ninety/twelve]|"
        "multiply [six by eight/two by seven/nine and five]|"
        "work out ten percent of fifty|divide [forty by five/nine by three]|what is the square of nine|"
        "subtract three from [twenty/ten]|"
        "how much is [two times seven/six plus two/half of eight]|[what is/give me] the sum of [two and six/eight and forty]|"
        "[what is/how much is] [nine minus two/six times eight/forty divided by two]|"
        "[calculate/compute] [two plus nine/half of six]||"
        "add six and eight|multiply nine by two|what is half of forty"
    ),
    "joke": phrases(
        "tell me a [joke/silly joke]|make me [laugh/smile]|say something [funny/silly]|tell the [one/joke] about the cat again|"
        "cheer me up with a joke|tell a joke about [robots/a dog/my boss]|do you know a funny [story/joke]|"
        "tell me your best joke|"
        "[I want/I need] to laugh|[one more/another/a new] joke[, please/ about a cat/]|"
        "what is [the funniest thing/the best joke] you know||"
        "tell me something funny|tell a joke about a cat"
    ),
    "lights": phrases(
        "turn on the [light/lights]|make the [kitchen/hall/room] [brighter/darker]|switch off the [lamp/light/hall light]|"
        "turn the [bedroom/kitchen] light to [blue/red]|dim the [light/lamp]|light up the [hall/kitchen]|"
        "turn off all the lights|"
        "make it [darker/brighter] in here|it is too [dark/bright] in [here/the kitchen/the hall]|"
        "[switch/turn] the [lamp/light] in the [kitchen/bedroom/hall] [on/off]|[I need/give me] more light||"
        "switch off the kitchen light|turn on the lamp in the hall"
    ),
}
TOPIC = {
    "sports": phrases(
        "[the/our/their] team won the [match/game/cup/final]|she scored [two goals/the last goal]|"
        "the race [starts at noon/was short]|"
        "he [trained/trains] for [the/a] [marathon/race]|the coach was [proud/angry]|"
        "the goalkeeper [was injured/saved the game]|"
        "they lost the [final/last] [game/match]|the [swimmer/runner] broke [a/her own] record|the players ran onto the field|"
        "the tennis match took [four hours/all day]|a fan threw his cap on the field|the champion [kept/lost] her title|"
        "the league has a new [referee/coach/team]|[a/the] [runner/player] [won/lost] [a/the last] [marathon/race]|"
        "[the record/her record] in the [marathon/race] was [broken/beaten]|"
        "the [coach/trainer] [trains/picked] [the players/our team]||"
        "the team lost the match|she won the race|he broke the marathon record|the coach trained the goalkeeper"
    ),
    "food": phrases(
        "the [soup/stew/sauce] needs more [salt/pepper]|bake the [bread/pie/potatoes] for [an hour/ten minutes]|"
        "the [pasta/cake/curry] was [delicious/tasty/too hot]|add [two eggs/butter/sugar] and some [milk/flour]|"
        "the cook [used/likes] fresh basil|"
        "the [cake/bread/pie] is in the oven|peel the [potatoes/apples] first|he fried the [onions/eggs/fish]|"
        "the new cafe serves [pancakes/soup]|"
        "she cut the [cheese/onions] into cubes|we had [rice with beans/soup and bread/fried fish]|"
        "the recipe asks for [butter/salt]|"
        "[a/this] delicious [soup/cake/meal] [was served/came next]|"
        "[boil/fry/bake] [the rice/some potatoes/two eggs] [in butter/with salt]||"
        "the soup was delicious|bake the cake for an hour|she fried the potatoes|add butter and some salt"
    ),
    "music": phrases(
        "the band played [a new song/for an hour/its hit]|she tuned her [guitar/violin]|"
        "the choir [sang softly/sings on Sunday]|"
        "he wrote [a tune/two songs] for the [flute/choir]|the drums were [loud/too loud]|the concert was [sold out/great]|"
        "the singer lost her voice|he practices the [piano/flute/guitar] every day|the album has ten songs|"
        "the violin needs new strings|"
        "the orchestra played [for two hours/a waltz]|the crowd sang along|the rhythm is easy to learn|"
        "[a/the] [flute/guitar/violin] [plays/played] [the tune/softly/the melody]|"
        "[we sang/they wrote] [two new songs/an old song]||"
        "the choir sang a new song|he plays the guitar every day|the band played two songs|the flute was too loud"
    ),
    "travel": phrases(
        "the [train/bus/ship] leaves at [nine/noon]|we booked a [hotel by the sea/flight/room]|"
        "her [flight/train] was [delayed/cancelled]|"
        "they packed their [bags/suitcases]|the border was [open/closed]|the bus to the airport is full|"
        "he lost his [passport/ticket/suitcase]|"
        "the ship reached the [harbor/island]|we took a taxi to the [station/airport]|the guide showed us the old town|"
        "the journey took [three days/all night]|their suitcase went to the wrong city|we saw the island by boat|"
        "[a/our] flight [to the island/from Oslo] [was late/left at nine]|"
        "[a delayed/the night] train [brought/took] us [home/to the sea]|"
        "our bags [are/were] [at the airport/on the ship]||"
        "the flight leaves at nine|we booked a ship to the island|he lost his bags at the airport|the train was delayed"
    ),
    "weather": phrases(
        "it [rained/snowed] [all day/all night/again]|the wind is [strong tonight/cold]|snow fell on the [hills/roofs]|"
        "the sun [came out/is shining]|"
        "a storm is coming|it [is/was] [foggy/rainy/cloudy and cold]|the temperature fell below zero|"
        "dark clouds came from the west|"
        "it will be [warm and dry/sunny/foggy]|the fog did not lift|lightning struck the tower|hail damaged the cars|"
        "it was the [hottest/coldest/wettest] day of the year|"
        "[strong/cold] [wind/rain] [is coming/came] from the [hills/sea/west]|"
        "[more/a lot of] [snow/rain/fog] is [expected/on the way]|[rain/snow] fell [all night/in the morning]||"
        "snow is coming tonight|it rained on the hills|the wind was strong all day|it will be cold and foggy"
    ),
    "money": phrases(
        "the bank [raised/cut] the [rate/fees]|he [paid/pays] his [rent/tax/bills]|prices [went up/fell/rose] again|"
        "she saved ten dollars|"
        "the loan was [approved/paid back]|the tax is due in May|the shares [fell/rose] by [two/ten] percent|"
        "he keeps his coins in a jar|"
        "the budget is too small|she got a better salary|the company made a [profit/loss]|he owes me twenty dollars|"
        "they cut the fees|"
        "[a loan/the loan] [from/by] the bank [costs/has cost] [two/six] percent|"
        "[his/her/a good] [salary/pay] [was paid/went up]|"
        "[she/he] [saves/saved] [some money/half of the rent] every month||"
        "the bank approved the loan|she paid the tax|prices fell by two percent|he saved his salary"
    ),
    "health": phrases(
        "the doctor [gave/wrote] her a [pill/note]|he [has/had] a [fever/cold/cough]|wash your hands often|"
        "the nurse [took his blood/is kind]|"
        "she broke her [arm/leg]|the hospital has new beds|a cold lasts a week|he should sleep more|her [tooth/leg/back] hurts|"
        "the patient feels [better/sick/weak]|the medicine tastes bitter|the vaccine is safe|"
        "too much sugar is bad for the teeth|"
        "[a/the] nurse [helped/visited] the [patient/sick man]|his [arm/head] [hurts/still hurts]|"
        "take [a pill/your medicine] [for the fever/every day]|"
        "[blood/a test] was taken by the doctor||"
        "the nurse gave him a pill|the doctor took her blood|her arm hurts|the patient has a fever"
    ),
    "science": phrases(
        "the [probe/satellite] found a new [planet/star]|water boils at a hundred degrees|"
        "the experiment [failed twice/was a success]|"
        "scientists [measured/study] the [light/heat] of a star|the cell divides in two|the rocket [reached/left] the moon|"
        "light is faster than sound|"
        "they found bones of an old animal|the robot walked on its own|atoms are very small|the study was published in June|"
        "the laboratory tested [a new metal/the rocket]|[an/the] experiment [tested/measures] the [metal/heat/sound]|"
        "scientists [found/built] [a planet/a robot/tiny cells]|"
        "[the rocket/a rocket] [carries/brought] a [robot/probe] to a planet||"
        "the experiment measured the light|the rocket found a new planet|scientists tested the robot"
    ),
    "politics": phrases(
        "the [president/senator] gave a [speech/long speech]|the vote was close|the new law was [passed/stopped]|"
        "the minister resigned|"
        "the mayor opened the hall|the parties could not agree|people marched for their rights|the election is in May|"
        "the council [meets/met/votes] on Monday|the senator answered questions|the treaty was [signed/broken]|"
        "the government fell|"
        "[a/the] [minister/mayor] [won/wants] the [election/vote]|[the president/they] signed the [law/treaty]|"
        "[a law/the law] was [signed/passed] by the [council/government]|he lost [an/his] election||"
        "the minister gave a speech|the new law was signed|the mayor lost the election|the council passed the treaty"
    ),
    "school": phrases(
        "the exam was [hard/easy/long]|she [did/forgot] her [homework/pencil case]|the class learns about Rome|"
        "the teacher praised [him/the pupils]|"
        "he [passed/failed] the [test/exam]|the lesson [starts at eight/was long]|the students wrote [an essay/a test]|"
        "the summer term is over|"
        "he learns ten words a day|the pupils went to the library|her grades got better|"
        "[the/our] teacher [wrote/gave] [a hard/the last] [test/lesson]|[the homework/this lesson] is [hard/for tomorrow]|"
        "[all/two] students [passed/did the exam]|the class [wrote/passed] an exam||"
        "the teacher wrote the exam|the students passed the test|the class did the homework|the lesson was hard"
    ),
    "animals": phrases(
        "the cat sleeps [on the sofa/in the sun]|a fox [came/went] into the garden|the dog barks at [the door/the cat]|"
        "the bird built a nest|"
        "the whale came up for air|the horses ran over the [hill/field]|a mouse ate the [cheese/bread]|"
        "the goat climbed the rock|"
        "the puppy lost a tooth|bees make honey|the zoo has two new [lions/bears]|the owl hunts at night|"
        "[a/the] [dog/bear/fox] [sleeps/hunts/ran] [in the forest/under a tree]|"
        "[two/some] [birds/goats/foxes] [ate/ran] [on the hill/in our garden]|"
        "[the bear/a fox] likes honey||the dog sleeps in the garden|a bird ate the honey|the fox hunts at night|"
        "the goat ran over the hill"
    ),
    "art": phrases(
        "the painting shows [a blue boat/an old man]|she drew a [portrait/picture/horse]|the museum bought a [statue/painting]|"
        "he mixes his colors by hand|the gallery opens on Sunday|the sculptor works in stone|the poem has four verses|"
        "the painter signed his [picture/portrait]|the dancers wore red|the play was written in spring|"
        "her [photographs/drawings] hang in the hall|"
        "the frame is made of gold|[a/the] statue [of stone/of a king] stands in the [museum/gallery]|"
        "[an artist/a painter] [drew/painted] [the king/a boat]|"
        "[the/this] [gallery/museum] shows [old paintings/his portraits]|his photographs are [in the museum/art]||"
        "the painter drew a portrait|the gallery bought a painting|the statue is made of stone|the museum shows her photographs"
    ),
}
