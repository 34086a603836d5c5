"""More whole requests for the tools of money, shopping and reference: the name of a tool, then what people say when they mean it."""

REQUESTS = """
convert_currency
My [hotel/flight] costs {amount} in {source}, what's that when I count in {target}?
Could you [turn/change] my {amount} from {source} into {target}?
{amount}, {source} > {target} [/pls/please]
I think in {target}, so what does {amount} in {source} [come to/amount to]?
If I handed over {amount} worth of {source} at the bank, how [much/many] {target} would they give me?
The price is {amount} in {source}, [give/tell] me the price in {target}.
Work out the {target} value [of/for] a sum in {source}, namely {amount}.
In {target}, [what/how much] would somebody get who changes {amount} of the currency {source}?
A friend owes me {amount} of {source} but pays in {target}. [How much/What sum] is due?
At today's rate, {amount} of the {source} [equals/makes] how many {target}?
[Calculate/Compute] what {amount} is worth if that is {source} and the answer should be {target}.
Travelling soon, I need {target} in exchange for my {source}, {amount} of it, so [do the sum/convert that].
Is {amount} a lot in {source}? I only [know/understand] prices in {target}.
Express the sum of {amount}, given in {source}, [using/in terms of] {target}.

pay_bill
I got a reminder from {company} [again/today], so settle the {amount} I owe.
Could {amount} be [transferred/paid out] to {company}?
pay {company}: {amount} [/asap/today]
Before {company} gets [angry/impatient], let them have their {amount}.
There's an open invoice of {amount} from {company} that I'd like [settled/cleared].
Their repair cost me {amount}, and {company} is [waiting/asking] for the money. Pay up.
Charge my account with {amount} and [wire/remit] that to {company}.
So that my debts are gone, [hand over/send off] {amount} to the firm {company}.
{amount} is [due/overdue], and the company that should be paid is {company}.
How could I forget {company}? They [must/ought to] get {amount} from my account.
[Wire/Remit] the amount of {amount}, payable to {company}.
I'd like to get rid of the invoice that {company} sent, so [arrange/make] a payment of {amount}.
The invoice says {amount} and comes from {company}, so [take care of/see to] the payment.
If there is enough money [left/in the bank], {company} should be paid the {amount} they billed.

request_money
Could you [send/write] {person} a payment request over {amount}?
Remind {person} that {amount} is still [due/unpaid].
There is a debt of {amount} that {person} never [settled/cleared] with me.
Sorry to bother you, but {person} ought to give back the {amount} I [advanced/paid] last week.
Request payment, [debtor/from]: {person}, sum: {amount}
It would be nice if {person} finally [returned/repaid] my {amount}.
My [purse/pocket] is empty because I am still waiting for {amount} from {person}.
Bill {person} for {amount}[, if you would/ today].
Since I covered the dinner, let {person} know that {amount} is [mine/to come back to me].
A polite note should go to {person} asking to [transfer/wire] {amount} to me.
{amount} is what {person} has yet to [hand over/pay back to me].
Would {person} mind paying me the {amount} [we agreed on/that is overdue]?
Collect {amount} for me; the one who has to [cough up/pay] is {person}.
When {person} got the concert seats through me, {amount} was left [open/unpaid], so claim it.

split_bill
Do the [arithmetic/sums] for our receipt: total {amount}, payers {people}, and what falls to each?
We were {people} at dinner and the waiter [asked for/charged] {amount}, so what is my part?
If everyone [chips in/contributes] equally, what does each of {people} friends owe on {amount}?
Our [restaurant check/receipt] says {amount}; break it down for {people} heads.
{people} flatmates have to [cover/settle] a bill of {amount} together, tell me each share.
Cost [in all/total] {amount}, persons {people}, share each?
I would be glad to know what one person owes when {amount} is spread over {people} [guests/diners].
So that nobody pays too much, cut {amount} into {people} [equal/even] parts.
The gift came to {amount}. It is [from/paid for by] {people} colleagues, so how much from every one?
Instead of me paying {amount} alone, let all {people} of us pay [the same/alike].
Can the {amount} we spent be [parted/shared out] fairly with {people} taking part?
Going Dutch tonight: {people} eaters, {amount} on the [bill/check].
With {people} in our group, what is [each one's/everybody's] piece of the {amount} bill?
[Please/Kindly] work out the cost per head, {amount} for a group of {people}.

get_stock
What are {symbol} shares [trading at/worth] right now?
I wonder [what/how much] the market pays for {symbol} at the moment.
Give me a [quote/stock quote] for {symbol}.
Before I decide anything, I must know where {symbol} [closed/trades] on the exchange.
{symbol} quote[, quick/, now].
My uncle holds {symbol}; [are his shares/is his stock] worth anything these days?
Check the [ticker/stock market] for {symbol}, would you?
Has the stock {symbol} [climbed/dropped/moved] since this morning?
Sorry, what does a single share of {symbol} [go for/fetch]?
I keep hearing about {symbol}, so look up its current [share price/stock price].
At what [price/rate] does the exchange list {symbol}?
How is the market [treating/valuing] {symbol}?
Let me see the latest [market price/stock value] for the ticker {symbol}.
The [paper/news] says {symbol} is booming on the stock market. What would it cost me now?

buy_shares
Purchase {count} [shares/units] in {symbol}.
The stock {symbol} looks cheap, so [pick up/get] {count} of them for me.
Place [a buy order/an order to buy]: {symbol}, {count} shares.
Would you put shares of {symbol} into my [portfolio/depot], {count} of them?
I believe in {symbol} and wish to own {count} [shares/shares more] of it.
Before the price rises, [grab/snap up] {count} shares in {symbol}.
Stock purchase, ticker {symbol}, [quantity/number] {count}
My portfolio [lacks/is short of] {symbol}; {count} shares should do.
Let us become [shareholders/owners] of {symbol} with {count} shares.
As {symbol} is on the rise, {count} of its shares should be [bought/acquired] for me.
How about [buying/purchasing] {count} of the {symbol} shares today?
Spend some of my [savings/cash] on shares: {count} of {symbol}.
I would [love/be happy] to hold {count} stocks of {symbol}, please arrange the purchase.
From the stock market I [require/need] {symbol}, {count} shares to buy.

sell_shares
Unload {count} of the {symbol} [shares/stocks] I hold.
Please find a buyer for {count} [shares/stocks] in {symbol}.
{symbol} is falling, so [dump/drop] {count} of my shares.
I need cash and would part with {count} shares [of/in] {symbol}.
Place [a sell order/an order to sell]: {symbol}, quantity {count}.
My portfolio holds too much {symbol}; [lighten it/make it lighter] by {count} shares.
Could {count} of my {symbol} stocks be [sold off/put up for sale] today?
It is time to take profits on {symbol}: [offload/cash in] {count} shares.
[Reduce/Cut] my holding in {symbol} by {count} shares.
Stock sale, {count} shares, ticker {symbol}[, thanks/]
I have lost faith in {symbol}, so let {count} of my shares [go/be sold].
Before {symbol} crashes, get {count} shares out of my [portfolio/account].
Would you [liquidate/sell off] part of my {symbol} stake, namely {count} shares?
What I hold in {symbol} should shrink, [selling/so sell] {count} shares is right.

add_item
The shelf is bare, no {item} anywhere: [note/list] {count} for the supermarket.
Could {item} go on the [shopping/grocery] list, {count} in number?
We have run out of {item}; [jot down/note] {count} for the next trip to the shop.
List: plus {count} of {item}[/, thanks]
Please don't let me forget the {item} at the store, {count} is what we [want/lack].
Remember {item} for my shopping, [and make it/I need] {count}.
My shopping list is [missing/lacking] {item}, make it {count} of them.
Mum asked me to bring home {item}, {count} in all, so [extend/update] the shopping list.
[Enter/Insert] {item} in the shopping list, quantity {count}.
Oh, and {item} for the list [too/as well], {count} will be enough.
Would you be so kind as to [include/list] {item} among the things to buy, with {count} as the amount?
Of {item} I shall want {count}, so [have/get] them on the list of purchases.
For Sunday's party {item} have to be bought, {count} altogether, [keep that on/save that to] my list.
Shopping list [gets/grows by] {item}: {count} pieces.

remove_item
Grandma is bringing {item} herself, [which makes that entry/so that line is] on the shopping list superfluous.
My neighbour gave me {item}, so they can [vanish/disappear] from the shopping list.
Could you [cross out/erase] {item} on my shopping list?
I already bought {item}, [scratch them/cross them off].
Forget about the {item}[/ I wanted], they need not be bought after all.
The shopping list still [shows/names] {item}, which is wrong, so drop them.
Please let {item} [disappear/go] from the grocery list.
Sorry, I put {item} on the list by [mistake/accident], undo that.
Shopping list minus {item}[/, please].
There is no [use/sense] in buying {item}, so get them off my list.
Because the cupboard is full of {item}, my list should [lose/no longer show] them.
{item}: not needed, [strike/erase] from list
We decided against {item}, so [clear/wipe] them from the shopping list.
Would it be possible for {item} to be [struck off/dropped from] the grocery list?

check_price
For how much [do you sell/does one get] the {item}?
I cannot find a price tag on the {item}, what [does it say/is it]?
What would a {item} [set me back/come to]?
Could you [let me know/say] at what price the {item} is sold?
{item}, [cost/price]?
Is the {item} [cheap/dear], and what exactly would I pay?
My budget is small, so first tell me what the {item} [goes for/costs].
At [which/what] price are you offering the {item}?
I have my eye on that {item}; what [sum/amount] are you asking?
How many [dollars/euros/pounds] would I have to spend on a {item}?
I'd be interested in what you [charge/ask] for a {item}.
Before I put the {item} in my [cart/basket], I want to see its price.
Name your [price/figure] for the {item}.
The {item} [has/must have] a price, so what is it?

check_stock
I'd drive over to {city} if I knew the branch there [carried/had] {item}.
Could you see whether the store in {city} has any {item} [left/on the shelf]?
{item}, {city} branch, [available/in stock]?
Have the {item} [sold out/run out] at your {city} store?
Before I make the trip, look whether {item} are [available/to be had] at the {city} shop.
Supplies at the branch, town {city}: are there [still some/enough] {item}?
My sister works in {city}. Could she pick up {item} at your store there, or are they [sold out/gone]?
I am hunting for {item}, does the [branch/store] in {city} keep them?
Are {item} something your {city} branch has [on hand/at the moment]?
Is there still a supply of {item} [at/on the shelves of] the shop in {city}?
Please find out from the {city} store if it has {item} [ready/lying there].
I hope {item} have not [run out/sold out] in the {city} shop, would you check?
In {city}, would I stand [before/in front of] empty shelves if I came for {item}?
Look into the [stockroom/warehouse] of the {city} shop for {item}.

cancel_order
Don't ship order {code}, the [cause/reason] being that {reason}.
I ordered too soon: {reason}. Please [scrap/drop] order {code}.
Is it possible to [call off/withdraw] order {code}? You see, {reason}.
Order {code} [is off/can be dropped] because {reason}.
Sorry for the trouble, but {reason}, and so I must [revoke/withdraw] order {code}.
Now that {reason}, order {code} is [pointless/useless], so please annul it.
Cancellation, order {code}, [cause/grounds]: {reason}
I have changed my mind about order {code} because of this, [namely/in short]: {reason}.
My order bears the number {code}. Kindly [undo/void] it, for {reason}.
Could the order with the number {code} be [annulled/called off], seeing that {reason}?
Because {reason}, I wish to [take back/withdraw] the order numbered {code}.
You need not [pack/send] order {code} any longer: {reason}.
Considering that {reason}, it would be best to [halt/drop] order {code}.
Void order {code} and [note/put down] as the reason that {reason}.

return_item
I am unhappy with the {item} I [got/received] under order {code} and want my money back.
How can I give you back the {item} that [came with/arrived in] order {code}?
Start a return for order {code}, the [article/thing] is the {item}.
The {item} [arrived damaged/has a crack], please arrange the return for order {code}.
From order {code} I am keeping everything [except/but] the {item}, which goes back to you.
I'd rather not keep the {item}; [order number/it was order] {code}.
Please [collect/pick up] the faulty {item} you shipped with order {code}.
Request for return: {item}[/, not wanted], order number {code}
Since the {item} is the wrong colour, I am [giving back/returning] that part of order {code}.
My [husband/wife] hates the {item} from order {code}. May we return it?
Could I get a [label/refund label] for sending back the {item}? The order was {code}.
Under {code} you sent me a {item} that [does not work/never worked], so I am mailing it back.
It was a [mistake/bad idea] to order the {item}, so it should go back; see order {code}.
Refund me for the {item} in order {code}, I'll [bring/ship] it back.

track_parcel
Has my parcel with the number {code} [left/reached] the depot yet?
I was promised a delivery, number {code}, and nothing has [come/arrived].
Please [locate/trace] the parcel {code}.
How far along is the [shipment/delivery] {code}?
My daughter is waiting for a package, tracking number {code}, so [tell us/find out] where it is.
Parcel status {code}[/, please]
Follow the shipment {code} for me and [say/report] where it is.
I fear that package {code} got [lost/stuck], could you look?
Any [news/word] of the parcel numbered {code}?
In which [town/depot] is the parcel {code} right now?
It has been a week since package {code} was mailed, so [where has it got to/where can it be]?
The postman did not bring {code} again. [See/Check] where that parcel is.
May I know [when/on which day] the package {code} will reach me?
Let me see the [journey/delivery status] of shipment {code}.

order_food
Could {count} portions of {dish} be [delivered/sent] to {address}?
Nobody feels like cooking, so have {dish} for {count} delivered to [us at/our home,] {address}.
At {address} we are [starving/hungry] for {dish}, and {count} servings would do.
Please have the kitchen send {dish}, {count} [helpings/servings], over to {address}.
Delivery to {address}, [meal/dish] {dish}, portions {count}
I'd love some {dish} tonight, enough for {count}; [drop it off/leave it] at {address}.
[Phone in/Place] an order for {count} helpings of {dish}, the courier should come to {address}.
May I have {count} plates of {dish} [brought/delivered] to {address}?
The driver should [come/ride] to {address} with {count} servings of {dish}.
We'll eat at home: {count} meals of {dish}, [door/house] at {address}.
Since the fridge is empty, [send/rush] {dish} to {address}, {count} portions of it.
My guests at {address} are waiting for {dish}; {count} [plates/servings] please.
Takeaway: {dish}. How many: {count}. [Where to/Deliver it to]: {address}
Let {count} boxes of {dish} arrive at {address}[, hot if you can/].

translate
My guest only understands {language}, so how would I [express/say] "{text}"?
Could you render "{text}" [as/in] {language}?
I need to write "{text}" in a letter, but it has to be in {language}[/, please].
What would a speaker of {language} [say/write] for "{text}"?
{language} translation: "{text}"[/, please]
"{text}" in {language}, [how does that go/please]?
I'm learning {language} and can't manage the [sentence/phrase] "{text}".
Please give me "{text}", [only/but] in {language}.
Write the {language} [version/equivalent] of "{text}".
There is a sign that reads "{text}" and I want it [translated/put] into {language}.
If I were in a shop where they speak {language}, how could I say "{text}" [there/to them]?
Make {language} out of ["/this: "]{text}".
Which {language} words [match/stand for] "{text}"?
So that my pen friend can read it, "{text}" should be [turned/translated] into {language}.

define_word
I came across {word} in a [book/letter], but what is it supposed to mean?
Crossword trouble: {word} is printed there, and its meaning [escapes me/is a riddle to me].
My teacher used the word {word} and I didn't [understand/get] it.
{word}: [meaning/definition]?
Consult the dictionary [on/about] {word}, please.
How would you [define/describe] the word {word}?
What's the [dictionary/exact] entry for {word}?
I'd like to know the [sense/meaning] of the term {word}.
When somebody says {word}, what are they [talking about/trying to say]?
The word {word} is [new/strange] to me, please explain.
Is {word} a real word, and if so what does it [stand for/mean]?
Give me a [definition/short explanation] of the term {word}.
Check a dictionary so that I finally [understand/grasp] {word}.
Sorry, I'm not a native speaker: [what is/please define] {word}?

find_rhyme
My verse ends in {word}, and now I need something that [rhymes/chimes] with it.
Could you think of a word to [rhyme/pair] with {word} in a poem?
I'm stuck with my song, the line ends with {word} and no rhyme [comes to mind/will come].
List a few words that [share/have] the ending sound of {word}.
{word} rhymes with [what/which word]?
For a birthday [poem/verse] I want words rhyming with {word}.
Are there any [good/clean] rhymes to {word}?
Help a poor poet: {word} needs a [partner that rhymes/rhyming partner].
Do you know a rhyming word [to go/that goes] with {word}?
Suggest [something/a word] that I could rhyme with {word}.
I would like my [next line/couplet] to rhyme on {word}, so what words fit?
Rhyming dictionary, [entry/look up] {word}
In my rap the first line closes with {word}, so the second should rhyme, [with what/any ideas]?
A rhyme is [wanted/missing], the word is {word}.

convert_units
My instructions say {value} and the unit is {source}, but I only know {target}, so [convert/recalculate] it.
From the unit {source} over to {target}, please [recalculate/carry] the number {value}.
If something measures {value} when taken in {source}, what does it [come to/make] in {target}?
Unit conversion: number {value}, given {source}, [wanted/output] {target}
I think in {target}, so a label with {value} in {source} [puzzles me/says nothing to me].
Going from {source} to {target}, what [becomes of/happens to] {value}?
The unit should be {target}, while I have {source}, and the [number/figure] is {value}.
The manual uses {source} and gives {value}; I'd like the [figure/number] in {target}.
To how many {target} does it [amount/correspond] when I count {value} of the {source}?
Tell me the number of {target} that [equals/makes up] a quantity of {value} in {source}.
Switch {source} over to {target}[ for me/, please], and the value is {value}.
Instead of {source} I would rather [see/read] {target}; what we measured was {value}.
Americans use {target} and not {source}, so [how many/what number] do I tell them for {value}?
My ruler counts in {source} and stopped at {value}, yet the form [asks for/demands] {target}.

random_number
Let chance decide: a number no lower than {low} and [no higher/no greater] than {high}.
Could you [think of/come up with] some number in the range {low} to {high}?
We are drawing a raffle winner, the tickets run from {low} up to {high}, so [pick one/draw one].
Surprise me with a number [somewhere/anywhere] from {low} through {high}.
Roll a number for our game, minimum {low}, [maximum/upper end] {high}.
[Throw/Roll] the dice, lowest face {low}, highest face {high}.
I can't decide on a number, so choose one by chance, starting at {low} and [ending/stopping] at {high}.
Lottery: [smallest/lower limit] {low}, biggest {high}, one number please
With {high} as the upper bound and {low} as the lower, [generate/produce] a random number.
For my game the computer must pick any value above or equal to {low}, but [never/not] over {high}.
Which number do you draw if the [hat/urn] holds slips from {low} to {high}?
Say a number by chance; it may be {low}, it may be {high}, or anything [in between/in the middle].
I'd like a [random/chance] value that lies within {low} and {high}.
Spin the wheel, its numbers [begin at/run from] {low} and go up to {high}.

percent_of
The shop gives {percent} percent off {value}, so how [big/large] is the discount?
I have to pay {percent} percent tax on {value}, what does that [make/come to]?
If {value} is everything, how much is a share of {percent} [percent/per cent]?
Compute {percent} percent, [base/basis] {value}.
My tip should be {percent} percent and the bill came to {value}, so what do I [leave/add] as a tip?
Could you [figure out/calculate] what {percent} percent makes out of {value}?
Out of {value} votes she got {percent} percent, so how many [votes is that/were hers]?
{percent} percent from {value}, [what number/how much]?
The bank pays {percent} percent interest a year on my {value}, so [tell me the interest/what do I get]?
Tell me the [number/figure] that makes up {percent} percent of {value}.
From a [sum/total] of {value}, take {percent} percent and say what it is.
How [many/much] would {percent} percent be, given {value} as the whole?
I gave away {percent} percent of my {value} coins. [How many were they/What number is that]?
With {value} as one hundred percent, what does {percent} percent [equal/amount to]?

count_words
My teacher allows few words, so [check/tell me] how many "{text}" contains.
Could you [find out/say] the number of words in "{text}"?
How [long/wordy] is "{text}", counted in words?
"{text}", word [total/number]?
I pay for my ad by the word: "{text}". How many will they [charge/count]?
Tell me the length in words of [the line/the sentence] "{text}".
Of how many words does "{text}" [consist/consist, please]?
Let me know how many words I [used/needed] when I typed "{text}".
For the telegram "{text}" I need to know how many words it [has/holds].
If I [send/say] "{text}", how many words have I used?
Please do a word count [on/for] "{text}".
I've lost track, so count: "{text}", how many [words/single words]?
The sentence "{text}" should not have too many words, so [count them/how many are there]?
Go through "{text}" word by word and [give/report] me the total.

search_people
Our roof leaks in {city}, so I'm looking for a [skilled/reliable] {job}.
Could you [recommend/suggest] a {job} working in {city}?
Who could help me in {city}? It has to be a [trained/real] {job}.
I wish I knew a [decent/trustworthy] {job} around {city}.
My company in {city} would like to hire a {job}, [please search/can you find one].
Looking for: {job}, [place/location] {city}
Give me the [name/phone number] of a {job} living in {city}.
Is anybody in {city} [working/employed] as a {job}?
Whom do I call in {city} when I [need/want] a {job}?
For a job in {city} a {job} is [wanted/sought], do you know one?
As my old {job} has retired, I have to find [a new one/another] in {city}.
Please get me in touch with a {job} [based/living] in {city}.
A {job} should come to my house in {city}, so [look for one/whom can I ask]?
Are there people in {city} who [earn their living/work] as a {job}?
"""
