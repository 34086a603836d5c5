"""Clauses of texts about trade: an order of one article, and a basket of several."""

from rtlang.model.embedded.clauses import Clauses
from rtlang.model.embedded.kinds import lines

ORDER = Clauses(
    cores=lines("""
{customer} [wants/orders/buys/takes/needs/asks for/gets/reserves/receives/is waiting for/pays for] {quantity} {items}
{customer} [wants/orders/buys/needs/asks for/is interested in/will not do without/calls about] {items}
{customer} [will take/asks for/wants/needs/would like] {quantity} [of them/pieces/units]
{customer} [pays/offers/spends/accepts/has to pay] {price} {money} [apiece/a piece/each/per unit/for one {item}]
{customer} [placed an order/is our customer/wrote to us/wants to buy something/called the shop/goes shopping/is happy with the offer]
{customer} [lives in/orders from/hails from/runs a shop in/picks it up in/calls from] {city}
{quantity} {items} [go/are sent/leave the shop/were sold/are packed/are reserved/were ordered/wait here/will make {customer} happy]
{quantity} [is the number of {items} in the order/pieces are needed/units were ordered/of them go into the box]
{items} are what {customer} [wants/buys/ordered/is looking for/has in mind]
{price} {money} [is what {customer} pays/is our price/was agreed on/has to be paid] for [each {item}/one {item}/a single piece]
{price} {money} [buys/pays for/gets you] [one {item}/a single {item}/one of the {items}]
[each/one/every/a single] {item} [costs/is/sells for/goes for/comes at/brings us/is sold at] {price} {money}
the {items} [cost/sell for/go for/bring us/are sold for] {price} {money} [each/apiece/a piece]
we [charge/demand/ask/want/bill/get] {price} {money} [each/apiece/per unit/for each {item}/for one {item}]
we [sell/send/ship/deliver/owe/promised/sold] {customer} {quantity} {items}
we [have/got/received/confirm/filled] [an order/a request/a purchase] [from/by/of] {customer}
[please send/please pack/pack/ship/deliver/get ready/put aside/I want/I need/may I have/let us have] {quantity} {items}
[sell/bring/hand/give/mail] {customer} {quantity} {items}
[call/thank/write to/send the bill to/say thanks to/help/ask] {customer}
{city} [is where the {items} go/is where we send it/is where {quantity} {items} are needed/is where the parcel goes]
[the town of/our shop in/our office in/somebody in] {city} [gets/needs/asks for/ran out of/wants] {quantity} {items}
{city} [is home to {customer}/is the city of {customer}/is the address of {customer}/is the destination]
in {city} [somebody/a shop/a school/an office] [needs/wants/ordered/asks for] {quantity} {items}
to {city} [go/we send/we ship] {quantity} {items}
a [box/carton/van/crate] [of/with/full of] {quantity} {items} [leaves/is ready/is on its way/was sold/goes out]
[buying/ordering/asking for/requesting] {quantity} {items} is {customer}
[my name is/this is/I am] {customer}
[the/this/a new] [order/purchase/request] [came in/is ready/was paid/was placed/is confirmed/goes out]
[the parcel/the box/the van] [is ready/leaves/goes out/was packed/is on its way]"""),
    adjuncts=lines("""
[for/on behalf of/thanks to/in the name of/by order of] {customer}
, [ordered/requested/paid/bought/wanted/signed] by {customer}
, [customer:/buyer:/client:/the customer being/the buyer is/name:/billed to/all for] {customer}
, [writes/says/signed/yours,/regards,] {customer}
as {customer} [asked/wrote/told us/wished/agreed]
, and {customer} [will pay/as a buyer gets the bill/gets the bill/is waiting/is happy]
[with {customer} as the buyer/because {customer} asked for it/now that {customer} has paid/when {customer} called]
, [item:/article:/product:/the item being a/the article is a/goods of the kind] {item}
[looking for/in need of/interested in/hoping for/out of/shopping for/asking about] {items}
, [all of them/nothing but/none other than/that is to say] {items}
[because/as/since/now that] the {items} [are gone/are popular/ran out/look good]
in a [quantity/number/count] of {quantity}
, [quantity:/qty:/count:/the quantity being/the quantity is/number of pieces:/pieces:/units:] {quantity}
, {quantity} [of them/pieces/units/in total/in all/pieces altogether]
[counting/making/numbering/taking/filling a box with] {quantity} [pieces/units]
[at/for] {price} {money} [each/apiece/a piece/per item/for one]
for {price} {money} per unit
, [price:/unit price:/price each:/cost per piece:/the unit price being/each/each at/each for/one costs] {price} {money}
, [price:/unit price/each/cost per unit:] [${price}/{price}]
[paying/offering/spending/promising/bidding] {price} {money} [each/apiece/per piece/for one/for every unit]
[costing/selling at/billed at/valued at/going for] {price} {money} [each/apiece/a piece/per item]
, which [cost/sell for/are sold at/come at/go for] {price} {money} [each/apiece/a piece]
with a price tag of {price} {money} [each/on every one/per unit]
[if/as/because] [one is/a piece is/each one costs/they are only] {price} {money}[ or so/ now/ today/]
, of which [each/every one/one] [costs/is/goes for] {price} {money}
to {city}
in {city}
from {city}
[to be sent/to be shipped/shipped/delivered/going/travelling/by train/by post/on the way] to {city}
, [city:/ship to:/place:/deliver to/the destination being/town:/address:/the city is/delivery:] {city}
[living/based/at home/with a shop/with an office/waiting/with a house] in {city}
[bound for/headed for/on the road to/leaving for/meant for] {city}
, who [lives in/comes from/is in/has a shop in/wrote from/works in] {city}
, whose [address/home/shop/office/house] is in {city}
, a [customer/buyer/client/friend/shop owner] [from/in/out of] {city}
[calling/writing/ordering/coming] from {city}
, [quantity/qty/count:] {quantity}, [unit price/price each/price] {price} {money}
, {quantity} [pieces/units] [at/for] {price} {money} [each/apiece]
[wanting/buying/ordering/asking for/taking/in need of] {quantity} {items}
, who [wants/buys/asks for/will take/ordered] {quantity} {items}
, [order:/goods:/items:/in short:] {quantity} x {item}
[for/to] {customer} [in/of/from] {city}
, {quantity} {items} [in all/in one box/altogether]
in exchange for {price} {money} [each/per {item}/a piece]"""),
)

BASKET = Clauses(
    cores=lines("""
{customer} [wants/orders/buys/takes/needs/asks for/gets/reserves/longs for/pays for/chose/picks] {goods}
{customer} [placed an order/is our customer/wrote to us/called the shop/goes shopping/sent a list/says thanks/has paid]
{customer} [lives in/orders from/hails from/runs a shop in/comes from/calls from] {city}
{customer} [expects/awaits/will receive/would like/cannot wait to have] {goods}
{goods} [go/are sent/leave the shop/were sold/are packed/wait here/lie in the box/were chosen/came to mind]
{goods} [will make {customer} happy/are what {customer} wants/belong to {customer}/stand on the list of {customer}]
{goods} [go/travel/are sent/leave] to {city}
we [sell/send/ship/deliver/owe/promised/sold] {customer} {goods}
we [packed/wrapped/found/have/prepared/loaded/boxed up] {goods}
we [have/got/received/confirm/filled] [an order/a request/a shopping list] [from/by/of] {customer}
[please send/please pack/pack/ship/deliver/get ready/put aside/bring/let us have] {goods}
[I want/I need/may I have/can I get/I would like to have] {goods}
[sell/bring/hand/give/mail] {customer} {goods}
[call/thank/write to/send the bill to/say thanks to/help/ask] {customer}
[the town of/our shop in/our office in/everybody in] {city} [gets/needs/asks for/ran out of/receives] {goods}
{city} is where {goods} [go/are needed/will be unpacked/have to be sent]
{city} [is home to {customer}/is the city of {customer}/is the address/is the destination/is where the parcel goes]
in {city} [somebody/a shop/a school/an office] [needs/wants/ordered/asks for] {goods}
in {city} [lives/works/waits] {customer}
to {city} [go/we send/we ship] {goods}
a [box/carton/van/crate/bag] [with/full of/holding] {goods} [is ready/leaves/was sold/goes out]
[buying/ordering/asking for/requesting] {goods} is {customer}
on the [list/note/bill/desk] [of {customer} stand/are/you find] {goods}
[my name is/this is/I am] {customer}
what [was ordered/goes into the box/has to be packed/we need] is {goods}
[the/this/a new] [order/purchase/request/list] [came in/is ready/was paid/was placed/is confirmed/goes out]
[the parcel/the box/the van/the basket] [is ready/leaves/goes out/was packed/is on its way]"""),
    adjuncts=lines("""
[for/on behalf of/thanks to/in the name of/by order of] {customer}
, [ordered/requested/paid/bought/wanted/signed/chosen] by {customer}
, [customer:/buyer:/client:/the customer being/the buyer is/name:/billed to/all for/and all this for] {customer}
, [writes/says/signed/yours,/regards,/thanks,/asked] {customer}
as {customer} [asked/wrote/told us/wished/agreed]
, and {customer} [will pay/as a buyer gets the bill/gets the bill/is waiting/is happy]
[with {customer} as the buyer/because {customer} asked for it/now that {customer} has paid/when {customer} called]
[to please/with thanks to/in a letter from/after a call from/at the wish of] {customer}
, [which {customer} paid/and the bill goes to {customer}/so {customer} will be happy/the one to pay is {customer}]
to {city}
in {city}
from {city}
[to be sent/to be shipped/shipped/delivered/going/travelling/by train/by post/on the way] to {city}
, [city:/ship to:/place:/deliver to/the destination being/town:/address:/the city is/delivery:] {city}
[living/based/at home/with a shop/with an office/with a house/staying] in {city}
[bound for/headed for/on the road to/leaving for/meant for] {city}
, who [lives in/comes from/is in/has a shop in/wrote from/works in] {city}
, whose [address/home/shop/office/house] is in {city}
, a [customer/buyer/client/friend/shop owner] [from/in/out of] {city}
[calling/writing/ordering/coming] from {city}
[because/as/since] {city} is [the destination/the place to be/where it goes]
[wanting/buying/ordering/asking for/taking/in need of/shopping for/looking for] {goods}
[with/holding/full of/containing/made up of] {goods}
, [items:/goods:/articles:/cart:/order:/in short:/the list says/the items are/the goods being/inside you find] {goods}
, who [wants/buys/asks for/will take/ordered/reserved] {goods}
, [namely/that is/that means/nothing but/all in all/in detail] {goods}
[because/as/since/now that] {goods} [are needed/ran out/were on offer/were on the list]
[after choosing/before paying for/having picked/having paid for/to get] {goods}
, whose [list/basket/bag/parcel/wish] is {goods}
[for/to] {customer} [in/of/from] {city}
, [customer/buyer] {customer}, [city/town/destination] {city}
, the [customer/buyer/client] being {customer} [of/in/from] {city}
[with/holding] {goods} for {customer}
[taking/bringing/carrying] {goods} to {city}"""),
)
