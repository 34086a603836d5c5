"""Kinds of records of trade: an order of one article, and a basket of several."""

from rtlang.model.embedded import clauses_more
from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.clauses_of_trade import BASKET, ORDER
from rtlang.model.embedded.extras import EMAIL, NOTE_CODE, PHONE, URGENT, Record
from rtlang.model.embedded.extras_more import EXPRESS, GIFT
from rtlang.model.embedded.kinds import Drawn, Kind, lines, money
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.text_files import lines_of
from rtlang.model.embedded.words import Draw, listing, plural


def draw_order(draw: Draw) -> Drawn:
    item, (price, spelled) = draw.goods(), money(draw)
    record: Record = {
        "customer": draw.full_name(), "item": item, "quantity": draw.number(2, 90), "price": price, "city": draw.place_name(),
    }  # fmt: skip
    return record, {
        "items": plural(item),
        "price": spelled,
        "money": draw.pick(lex.CURRENCIES) if draw.chance(0.3) else "dollars",
    }


order = Kind(
    "order", words("order|purchase|request", "|"), draw_order,
    lines("""
{customer} [ordered/bought/has ordered/purchased/wants] {quantity} {items} [for/at] {price} {money} [each/a piece/apiece], [to be \
shipped/to be sent/for delivery] to {city}.
[Please send/Please ship/Kindly deliver/Send] {quantity} {items} to {customer} in {city}. [The price is/They cost/The unit price is/We \
charge] {price} {money} [each/a piece/per item].
New [order/purchase/request] from {city}: {customer}, whose [boss/team/firm] we know, wants {quantity} {items} [at/for] {price} \
{money}[/ each/ apiece].
{customer}, who [lives in/is based in/comes from/is from] {city}, [bought/ordered/takes/is buying] {quantity} {items}. [Each one \
costs/Each is/One costs/A single one costs] {price} {money}.
At {price} {money} [each/apiece/a piece], {customer} [will take/takes/buys/has ordered] {quantity} {items}. [Ship them/Send them/Deliver \
them/They go] to {city}.
[Hello/Hi/Good morning/Dear team], this is {customer} [from/in/calling from] {city}. [I would like/I want/I need/I'll take] {quantity} \
{items} at {price} {money} [each/a piece], please.
We [got/received/have] an order for {quantity} {items}. The [customer/buyer/client] is {customer} and the [city/town/destination] is \
{city}. [Unit price/Price/Price each]: {price} {money}.
{customer} [from/in/of] {city} [ordered/bought/asked for/requested/paid for] {quantity} {items} at {price} {money} each.
{quantity} {items} [go/are going/were sent/will be shipped] to {city} for {customer}, {price} {money} [apiece/each/per unit].
[Order/Purchase/Order form/New order]: {quantity} x {item}, {price} {money} per [piece/unit/item]. [Ship to/Deliver to/For/Send to] \
{customer}, {city}[./]
[Hi there/Hello/Good evening], my name is {customer}. [Could you/Can you/Would you please] [deliver/send/ship] {quantity} {items} to \
{city}? [I saw them for/You sell them at/They are] {price} {money} each.
[Yesterday/Today/Last week/This morning] {customer} [called/wrote/phoned] from {city} and asked for {quantity} {items}. We agreed on \
{price} {money} for each.
I want to [buy/order/get] {quantity} {items}. [My address is in/I live in/My home is in] {city}. I [will/can/would] pay {price} {money} \
for each one. [Thanks/Regards/Best wishes], {customer}
{city}, {customer}: {quantity} {items} @ [{price}/${price}]
The {items} [cost/are/sell for/go for] {price} {money} each and {customer} [needs/wants/gets/will get] {quantity} of them in {city}.
[Can I get/Could I have/May I order] {quantity} {items} for {price} {money} [a piece/each]? [Send/Ship/Deliver] them to {city}. \
[Regards/Thank you/Yours], {customer}
[Customer/Client/Buyer] {customer} in {city} has placed an order. [Item/Article/Product]: {item}. [Quantity/Amount/Count]: {quantity}. \
[Price/Unit price/Cost]: {price}.
{customer} in {city} [is waiting for/just paid for/has asked for] {quantity} {items}, each [priced at/sold for/worth] {price} {money}.
{customer} Will you send me {quantity} {items} to {city}? I [know/heard] they are {price} {money} each.
{customer} Please note: {quantity} {items} for {price} {money} each, [city/town] is {city}[./]
{quantity} {items} [please/, please/]! I am {customer} and [I live in/my house is in/write to you from] {city}. Your [shop/site/catalog] \
says {price} {money} [each/per piece].
Whoa, {customer} [really/actually] wants {quantity} {items} in {city}, and [all/every one] of them for {price} {money}[ each/ apiece/].
[Item/Product/Article]: {item}[,/;/.] [qty/quantity/count]: {quantity}[,/;/.] [price/cost/each]: [${price}/{price}/{price} \
{money}][,/;/.] [customer/buyer/client/name]: {customer}[,/;/.] [city/town/ship to]: {city}
[Buyer/Customer/Client] | {customer} | [city/destination] | {city} | [article/item] | {item} | [units/pieces/number] | {quantity} | \
[price/unit price] | {price}
[Ship to/Deliver to/Destination] {city}: {quantity} {items} ([unit price/price each/each priced] {price} {money}). [Ordered by/Bought \
by/Paid by/Billed to] {customer}[./]
[There is/We have] a parcel for {city} with {quantity} {items} [in it/inside]. {customer} [ordered/paid for/bought] them, every single \
one for {price} {money}.
[Good day/Dear shop/Hello]! We are a small [office/school/hotel] in {city}. [For/This is for] our next project we need {quantity} \
{items}, and {price} {money} [each/per unit] is fine. [Signed/Regards/Cheers], {customer}
A [client/customer/buyer] called {customer} [phoned/wrote to us/came by] and [reserved/requested/ordered] {quantity} {items}. We \
[bill/charge/ask] {price} {money} [per unit/for each/apiece]; the truck leaves for {city} [soon/tomorrow/on Monday].
[Each/One/Every] {item} is {price} {money}. {customer} [takes/wants/ordered] {quantity}, [delivered to/shipped to/sent to] {city}.
How many? {quantity}. Of what? {items}. For whom? {customer}. Where to? {city}. [At what price/How much]? {price} {money} each.
{quantity} [pieces/units] of the {item} [were/have been] sold to {customer}, who [paid/will pay/pays] {price} {money} for [one/every \
one/a single one]. [City/Destination/Delivery]: {city}.
{price} {money} [each/apiece/a piece], {quantity} {items}, [customer/client/for] {customer}, [shipping to/going to/delivery in] {city}
I [sold/have sold/am selling] {customer} {quantity} {items}. [The price for one/One of them/A piece] is {price} {money}. [They must/They \
should/They have to] reach {city} [soon/this week/next week].
After [some thought/a long talk/two calls], {customer} [decided on/settled on/went for] {quantity} {items} at {price} {money} [each/per \
piece]. The [delivery address/address/destination] is in {city}.""") + lines_of("order"),
    lines("""
Our client {customer} is based in {city} and has requested {quantity} {items}, priced at {price} {money} per unit.
Dear shop, {quantity} {items} should reach {city} soon. Bill {price} {money} for every single one to {customer}.
A parcel with {quantity} {items} leaves for {city}; the buyer, {customer}, paid {price} {money} for each.
Sold to {customer}: {quantity} {items}, {price} {money} each, destination {city}.
Delivery in {city} is fine for {customer}, whose request is {quantity} {items} with a unit price of {price} {money}.
What {customer} needs in {city}: {items}, {quantity} in number, and one is worth {price} {money}."""),
    (URGENT, PHONE, EMAIL, NOTE_CODE, EXPRESS, GIFT),
    sentences=lines("""
The [customer/buyer/client] is {customer}.
[Customer/Buyer/Client/Name/Ordered by]: {customer}[./]
The order [is for/comes from/was placed by/was made by] {customer}.
{customer} [placed the order/is the customer/wants to buy/is buying from us/wrote to us/will pay].
It was {customer} who [ordered/called/placed the order/asked for this].
Bill it to {customer}[, please/].
Sold to {customer}.
[We have a new order/There is an order/A request came in] from {customer}.
[The name of the customer/The name on the order/The buyer's name] is {customer}.
The [city/town/destination/place of delivery] is {city}.
[City/Town/Destination/Ship to/Deliver to]: {city}[./]
[Ship everything/Send it all/Deliver the goods/The parcel goes/The goods go/Delivery is] to {city}[, please/].
The parcel [leaves for/is sent to/must reach/should reach] {city}.
[The address is/The customer lives/The buyer is based/The house is] in {city}.
[Where to? To/Destination? It is] {city}.
[The item/The article/The product] is [called/the/a kind of] {item}.
[Item/Article/Product/Goods]: {item}[./]
[This is about/We are talking about/The order is for/All of them are/The boxes hold] {items}.
[What was ordered? It is/What is in the parcel? Only] {items}.
{items} are what [was ordered/we have to pack/is needed].
[Quantity/Qty/Count/Number of pieces/Amount]: {quantity}[./]
The [quantity/number of pieces/count] is {quantity}.
[How many? It is/How many of them?] {quantity}.
[In total/All in all/Altogether], {quantity} pieces [are needed/were ordered/have to be packed].
{quantity} [pieces/units][ are needed/ were requested/, please].
[Each/Each one/One/A single one/One piece] [costs/is/is sold for/goes for] {price} {money}.
The [price/unit price/cost] is {price} {money} [each/per unit/a piece/for one].
[Price/Unit price/Cost/Price each]: [{price}/${price}/{price} {money}][./]
They [cost/are/are priced at/sell for] {price} {money} [each/apiece].
We [agreed on/charge/ask for/bill] {price} {money} [each/per item/per piece].
{quantity} {items} [are needed/were ordered/have to be packed/are requested].
[Please send/Please pack/We need/We sold] {quantity} {items}.
[Order/Goods/Items]: {quantity} x {item}[./]
{customer} [ordered/bought/wants/needs/asked for/requested/purchased] {quantity} {items}.
{customer} [lives in/is from/comes from/has an office in/orders from] {city}.
{customer} in {city} [placed an order/is waiting/is our client/wants to buy something].
[For/To/Ship to] {customer} in {city}[./]
[The {items} cost/The {items} are/We sell the {items} at] {price} {money} each.
{quantity} {items} at {price} {money} each.
{customer} [pays/will pay/agreed to pay] {price} {money} for each [one/piece/of them].
[Send/Ship/Deliver] {quantity} {items} to {city}[, please/].
{customer} [will take/takes/gets] {quantity} of them.
The {items} [go/are going/will be shipped/leave for/are sent] to {city}."""),
    first_person=lines("""
[My name is/I am/This is/I'm/It's me,] {customer}.
{customer} here.
[Thanks/Regards/Best wishes/Yours], {customer}.
{customer} is my name.
[Hello/Hi/Good morning], {customer} speaking.
[I live in/I am from/I'm writing from/My address is in/My shop is in] {city}.
[Please send/Please ship/Can you deliver/Could you send] [it/everything/the parcel] to {city}[./?]
[The goods should reach me/I am waiting/You find me/We are based] in {city}.
[I would like to buy/I want to order/I am interested in/I am looking for/We need] {items}.
[My order is for/It is about/I saw your] {items}.
The [item/product/article] I want is called {item}.
[I need/I'd like/I'll take/Give me/We want] {quantity} [of them/pieces/units][, please/].
[How many? I need/My number is/Make it] {quantity}[ pieces/].
[The quantity I need is/I am thinking of/For my shop I need] {quantity}[ pieces/ units].
[I will pay/I'd pay/I can pay/I agreed to] {price} {money} [each/for each/apiece/a piece].
[Your price/The price I saw/Your offer] [was/is] {price} {money} [each/per unit/for one].
[You sell them for/I saw them for/They cost] {price} {money} [each/apiece/a piece], [right?/as I read./it seems.]
[I would like/I want to buy/I need/May I order/Can I get] {quantity} {items}[./?]
This is {customer} [from/in/calling from] {city}.
{customer} in {city} here.
[Send/Ship/Deliver] {quantity} {items} to {city}[, please/].
I [take/want/would like] {quantity} {items} at {price} {money} each.
My name is {customer} and I [need/want to buy/would like to have/am ordering] {items}."""),
    aliases={"items": "item", "money": ""},
    clauses=ORDER + clauses_more.ORDER,
)  # fmt: skip


def draw_basket(draw: Draw) -> Drawn:
    pairs = [(draw.goods(), draw.number(2, 60)) for _ in range(draw.pick((1, 2, 2, 2, 3, 3, 4)))]
    if draw.chance(0.2):
        goods = [f"{count} x {noun}" for noun, count in pairs]
    else:
        pairs = [(plural(noun), count) for noun, count in pairs]
        goods = [f"{count} {noun}" for noun, count in pairs]
    items: list[dict[str, str | int]] = [{"item": noun, "quantity": count} for noun, count in pairs]
    return {"customer": draw.full_name(), "city": draw.place_name(), "items": items}, {"goods": listing(goods)}


basket = Kind(
    "order", words("order|purchase|shopping list", "|"), draw_basket,
    lines("""
{customer} [from/in/of] {city} [wants/needs/would like/ordered/takes/is buying] {goods}.
[Please ship/Please send/Kindly deliver/Deliver/Send] {goods} to {customer}[ in/, who lives in/, city of] {city}.
[Order by/Purchase of/Request by/Shopping list of] {customer}: {goods}. [Deliver to/Ship to/Send it to/Goes to] {city}.
[Hi/Hello/Good morning/Hey], {customer} here. [I need/I would like/I want/Please get me] {goods}, [sent/shipped/delivered/brought] to \
{city}.
{customer} [ordered/bought/purchased/asked for/has paid for] {goods}. The [city/town/destination] is {city}.
[Deliver/Send/Ship/Bring] {goods} to {city}. [Ordered by/Bought by/Paid by/The buyer is/The one who pays:] {customer}.
[New order/New purchase/A new request/Another order] from {city}. {customer} [takes/wants/needs/gets] {goods}.
{customer} in {city} [bought/ordered/picked/purchased/took] {goods} [this morning/yesterday/today/last night].
This is {customer}. [Could I get/Can I have/May I order/Would you send me] {goods}? I [live/am based/am at home] in {city}.
[Send/Ship/Deliver/Bring] {goods} to {city}, please. [Thanks/Regards/Best wishes/Yours], {customer}
For {customer}, {city}: {goods}
The [customer/client/buyer] {customer} [asked us for/ordered/wants/requested] {goods}. They [go/are going/will be sent] to {city}.
Our [shop/store/branch/team] in {city} sold {goods} to {customer}.
We have [packed/boxed/wrapped/prepared] {goods} for {customer}. The parcel [goes to/leaves for/is sent to/must reach] {city}.
{customer} Will you bring {goods} to {city}?
{customer} Here is what we [need/want/would like] in {city}: {goods}.
{goods} [are/were/will be] [waiting for/reserved for/set aside for/sold to] {customer} in {city}.
[Shopping cart/Cart/Basket/List]: {goods}. [Customer/Buyer/Client/Name]: {customer}. [City/Destination/Town/Ship to]: {city}.
[Customer/Client/Buyer]: {customer}[,/;/.] [city/town/destination]: {city}[,/;/.] [items/goods/articles/cart]: {goods}
[City/Destination] = {city}, [customer/buyer] = {customer}, [goods/items] = {goods}
{city} - {customer} - {goods}
[Yesterday/This week/Today] we got mail from {customer}. [The list says/It asks for/The order is] {goods}, [all for/to be delivered \
in/everything to] {city}.
[My name is/I am/I'm] {customer} and [I would like to order/I want to buy/I'm ordering] {goods}. My [address is/home is/house is] in \
{city}.
[Whoa/Wow/Oh], {customer} really [wants/bought/needs] {goods} in {city}!
{city} [is the destination/is where it all goes/gets a parcel]: {goods}, [ordered/bought/paid] by {customer}.
[The truck/The van/A parcel] to {city} [holds/carries/is loaded with] {goods} for [our client/the customer/our buyer] {customer}.
[Dear shop/Dear team/Hello], [we are out of almost everything/the school year starts soon/our office is moving], so we need {goods} in \
{city}. [Signed/Regards/Cheers], {customer}
[What is in the cart/What did the customer order]? {goods}. [Who is it for/Who ordered]? {customer}. [Where to/Where does it go]? {city}.
{goods} for {customer} in {city}[, please/, thank you/].
{customer} [wrote from/called from/phoned us from/sits in] {city} and [asked for/ordered/put on the list] \
{goods}.""") + lines_of("basket"),
    lines("""
The shopping cart of {customer} holds {goods}; destination {city}.
{city} is where {customer} is waiting for {goods}.
Sold to {customer}: {goods}. Destination: {city}.
On the list of our client {customer}, based in {city}, we read {goods}.
Out of {city} comes a request for {goods}, and {customer} is the one who pays."""),
    (URGENT, PHONE, NOTE_CODE, EXPRESS, GIFT),
    sentences=lines("""
The [customer/buyer/client] is {customer}.
[Customer/Buyer/Client/Name/Ordered by]: {customer}[./]
[The order/The list/The request] [is for/comes from/was placed by/was sent by] {customer}.
{customer} [placed the order/is the customer/wrote to us/is our client/is the one to pay].
[Bill it/Send the bill] to {customer}.
It was sold to {customer}.
The [city/town/destination] is {city}.
[City/Town/Destination/Ship to/Deliver to]: {city}[./]
[Ship everything/Send it all/Deliver the goods/The parcel goes] to {city}[, please/].
[The customer lives/The buyer is based/The goods are awaited/The address is] in {city}.
The parcel [leaves for/must reach/is on its way to] {city}.
[The order is/The list says/The cart holds/We have to pack/We sold/Please send/On the list we read] {goods}.
[Items/Goods/Articles/Cart/Order]: {goods}[./]
[What is needed/What was ordered]? {goods}.
{goods} [were ordered/are needed/have to be packed/go into the parcel].
{customer} [ordered/bought/wants/needs/asked for/takes] {goods}.
{customer} [lives in/is from/comes from/is based in/waits in] {city}.
[Send/Ship/Deliver/Bring] {goods} to {city}.
{customer} in {city} [has placed an order/is waiting/is the buyer].
{goods} for {customer}."""),
    first_person=lines("""
[My name is/I am/This is/I'm] {customer}.
{customer} here.
[Thanks/Regards/Best wishes/Yours], {customer}.
{customer} is my name.
[I live in/I am from/I'm writing from/My address is in/We are based in] {city}.
[Please send/Please ship/Can you deliver/Could you bring] [it all/everything/the parcel] to {city}[./?]
[My home is/I am waiting/My office is] in {city}.
[I would like/I want to order/I need/I'd like to buy/Please get me/Can I have] {goods}[./?]
[My list says/My order is/On my list is/In my cart there are] {goods}.
[Give me/Sell me/I'll take/We need] {goods}, please.
This is {customer} [from/in/calling from] {city}.
[Send/Ship/Deliver] {goods} to {city}[, please/].
I am {customer} and I [need/want/would like/am ordering] {goods}."""),
    aliases={"goods": "items"},
    clauses=BASKET + clauses_more.BASKET,
)  # fmt: skip
