"""Whole texts of orders and baskets, each of which tells every field of a record. Held-out ones are in `kinds_of_trade`."""

from rtlang.model.embedded.kinds import lines

ORDER_TEXTS = lines("""
Having [haggled/bargained] the {items} down to {price} [dollars/euros] apiece, {customer} grabbed {quantity} of them \
and had the lot freighted to {city}.
{city} is where {customer} [expects/awaits] the {items}, {quantity} in all, invoiced at {price} [euros/pounds] a unit.
Due to a [flood/shortage/big party] in {city}, {customer} urgently requires {quantity} pieces of our {item}; the rate \
of {price} [dollars/euros] apiece was accepted.
Did you hear? {customer} [splurged/went all out] on {quantity} of those {items} at {price} bucks a pop, and they are \
[headed for/on the road to] {city}!
"{quantity} of your {items}, and not one fewer," [insisted/demanded] {customer} over the phone from {city}. We quoted \
{price} [dollars/pounds] per article.
[Courier/Driver]: proceed to {city}, ring the bell marked {customer}, hand over {quantity} of the {items} and collect \
[${price}/€{price}/{price} euros] for each.
[Reduced/Marked down] to {price} [dollars/euros] each, our {items} tempted {customer}, who snapped up {quantity} for \
the shop in {city}.
[LOG/INFO] order_received customer="{customer}" [dest/city]="{city}" item="{item}" [qty/quantity]={quantity} \
unit_price={price}
RE {item} STOP [FORWARD/DISPATCH] {quantity} AT {price} EACH STOP [ADDRESS/TOWN] {city} STOP {customer}
hey its {customer}, can u drop off {quantity} of the {items} over in {city}? i'm [cool with/fine with/ok with] \
{price} [bucks /]each
Invoice made out to {customer}: {item}, {quantity} [pcs/pieces] at [€{price}/${price}]. [Delivery point/Drop-off]: \
{city}.
It took a rebate to {price} [dollars/pounds] for every {item} to win the deal; now {customer} counts on \
[getting/receiving] all {quantity} of them at the depot in {city}.
Not a penny more than {price} [pounds/dollars] per {item} is what {customer} offers us, for {quantity} of them \
[unloaded/dropped off] in {city}.
Our warehouse [released/let go] {quantity} of the {items} today, bound for {city}, where {customer} shelled out \
{price} [euros/dollars] for each.
Because a single {item} is [only/just] {price} [dollars/euros], {customer} raised the number to {quantity}, all to \
arrive in {city}.
{customer}, a collector of {items} in {city}, couldn't [resist/help] adding {quantity} to the cart, even at {price} \
[dollars/euros] apiece.
Contract. The maker shall build {quantity} specimens of the {item}; {customer}, [resident/domiciled] in {city}, shall \
reimburse {price} [euros/dollars] for each specimen.
Ticket closed: {customer} confirmed {quantity} for the {item}, [accepted/approved] {price} per piece and \
[changed/corrected] the delivery town to {city}.
Whoever packs for {city} [tonight/today]: {customer} is due {quantity} of the {items}. [Tag/Label] each at {price} \
dollars.
Rumor has it that {quantity} of our {items} will [travel/journey] to {city} because {customer} couldn't say no to \
{price} [euros/dollars] a piece.
To {customer}: thank you for choosing our {item}! You [claimed/picked] {quantity}, each charged at {price} \
[dollars/pounds], and the carrier will get to {city} shortly.
[Sorry for the delay/Good news], {customer}! Your {quantity} pieces of {item} departed for {city} today and your card \
was debited {price} [pounds/euros] for each.
What {customer} of {city} [fancies/is after] is the {item}: {quantity} of it, please, at the [usual/old] {price} \
dollars a unit.
{quantity} | {item} | [@{price}/{price} each] | {customer} | [to /]{city}
Dear {customer}, we [gladly acknowledge/have noted down] {quantity} of the {items}. A single one sets you back \
{price} [dollars/euros], carriage to {city} included.
The {item} deal is done: {city} receives {quantity}, {customer} foots the bill, and each piece [comes to/runs to] \
{price} [euros/pounds].
[Retailer/Shop owner] {customer} stocks up on {items}: {quantity} [acquired/secured] at {price} dollars apiece for \
{city} store
Would {price} [pounds/dollars] per {item} suit you? If [so/yes], {customer} in {city} commits to {quantity}.
Unless [you object/anyone minds], I'll book {quantity} of the {items} for {customer} at {price} [dollars/euros] per \
unit and rush them to {city}.
Voicemail: "Um, {customer} speaking. Put me down for {quantity} of your {items}, the ones for {price} [euros/bucks] \
each, and [drive/truck] them over to {city}."
Though {price} [dollars/euros] per {item} struck {customer} as [steep/rather much], {quantity} were bought anyway and \
flown to {city}.
[Packed by hand/Checked and sealed]: {items} ({quantity}). [Recipient/Consignee]: {customer}. Route: {city}. Value of \
each: {price} [euros/dollars].
In the envelope from {city} lay a [cheque/check]: {customer} had reckoned with {price} [pounds/dollars] for a single \
{item}, multiplied by {quantity}.
Guess who [emptied/cleared] our shelf of {items}! {customer} from {city} carried home {quantity}, forking out {price} \
[dollars/bucks] apiece.
As agreed with {customer}, the {item} [stays/remains] at {price} [euros/dollars] per piece, and a shipment of \
{quantity} rolls into {city} on Friday.
Load {quantity} of the {items} on the {city} [van/truck]. {customer} has already [settled up/cleared the bill] at \
{price} dollars each.
{price} a piece was the [bid/offer]. With that, {customer} landed {quantity} of the {items}, which a trucker will \
[haul/cart] to {city}.
In exchange for {price} [dollars/euros] per {item}, we shall [furnish/supply] {customer} with {quantity} of them, \
free to the door in {city}.
{items}? [Sure/No problem], {customer}, we can spare {quantity}. They'll run you {price} [bucks/euros] each, and the \
bus brings them to {city}.
Subject: {items} for {city}. [Kindly/Please] count out {quantity}, charge {price} [euros/dollars] for each, and make \
the receipt out to {customer}.
Word came from {city} that {customer} has run out of {items}; {quantity} should [do/be enough], and {price} \
[dollars/pounds] for each is no problem.
Once {customer} had compared the offers, our {item} at {price} [pounds/euros] won, so {quantity} of it were signed \
for and put on the [train/night train] to {city}.
Sales diary: quoted {customer} a rate of {price} euros per {item}. [Answer/Reply] from {city} [within the hour/after \
lunch]: "Make it {quantity}!"
A bulk request for {items} [landed on my desk/popped up in the inbox], {quantity} to be precise, signed by {customer} \
and stamped in {city}; our rate is {price} [dollars/euros] each.
"If {quantity} of them qualify for {price} [dollars/pounds] per {item}, then count me in," [says/replies] {customer}. \
Drop-off point: {city}.
{customer} -> {city} :: {item} x {quantity} @ {price}[ each/ apiece/]
buyer {customer}; [sku/article] {item}; count {quantity}; each {price}; [ship_city/ship_to] {city}
Remember {customer}? The one with the [store/workshop] in {city}? Back again, this time craving {quantity} of our \
{items} for {price} [dollars/euros] apiece.
All of the {items} [bear/carry] a tag of {price} [dollars/pounds], and the whole {quantity} belong to {customer} once \
they get to {city}.
[Attention dispatch/Note to the loading dock]: the pallet with {quantity} of the {items} is destined for {city}. It \
belongs to {customer}, who was billed {price} [euros/dollars] per unit.
Cash on delivery: {customer} in {city} slips the [driver/postman] {price} [dollars/euros] for each {item} and keeps \
{quantity}.
Let the record show that {customer} [subscribed/signed up] for {quantity} of the {items}, payable at {price} \
[pounds/dollars] apiece on arrival in {city}.
[Nobody/No one] in {city} has ever imported so many {items} as {customer} did: {quantity} at one go, costing {price} \
[dollars/euros] apiece.
When the catalog advertised the {item} for {price} [euros/dollars], {customer} filled in the coupon, [wrote/entered] \
"{quantity}" in the box for the number and gave an address in {city}.
Order slip. Who: {customer}. What: {item}. [How many/Number of pieces]: {quantity}. [For how much apiece/Cost of \
one]: {price}. Where to: {city}.
{customer} [typed/texted]: "i'd go for {quantity} of the {items} if u do {price} [bucks/euros] each, i'm in {city} \
btw".
Since {city} is [far off/hard to reach], {customer} combined everything in one go: {items}, {quantity} of them, at \
{price} [euros/dollars] apiece.
Only {price} [dollars/pounds] per {item}? {customer} could [hardly/barely] believe it, and ended up with {quantity} \
on the way to {city}.
Both sides agree: the seller [supplies/provides] {quantity} of the {items}, the buyer, {customer}, remits {price} \
[euros/dollars] for each, and handover is in {city}.
Thanks to a [tip/hint] from a friend, {customer} discovered our {items}, chose {quantity}, transferred {price} \
[dollars/euros] for each and had them forwarded to {city}.
""")

BASKET_TEXTS = lines("""
Having [emptied/cleaned out] our shelves of {goods}, {customer} arranged for a truck back to {city}.
In {city} lives {customer}, and [on the doorstep there/at that door] we shall drop {goods}.
Due to a [kitchen fire/big wedding] in {city}, {customer} urgently requires {goods}.
"{goods}, and make it quick!" [barked/shouted] {customer} down the line from {city}.
[LOG/INFO] cart_submitted user="{customer}" contents="{goods}" [ship_city/dest]="{city}"
NEED {goods} STOP [RUSH/HURRY] TO {city} STOP {customer}
hey its {customer}, running low again lol. {goods} would be [great/perfect], same door in {city} [as always/as usual]
Attention [loading dock/night shift]: stack {goods} on the pallet marked {city}. Consignee is {customer}.
Word has it that {customer} is [hoarding/stockpiling] {goods} somewhere in {city}, all from our shop.
Did you know? {customer} just [splurged/blew the whole budget] on {goods} and is having everything mailed to {city}!
[Dear/Esteemed] {customer}, we confirm that {goods} have left our warehouse and will arrive in {city} [shortly/within \
days].
[Retailer/Shop owner] {customer} stocks up: {goods} soon [bound for/rolling toward] {city}
Besides a [friendly note/stamped envelope], the letter from {city} contained a wish list signed {customer}: {goods}.
What {customer} [craves/is after] this time: {goods}. As ever, the drop-off is in {city}.
Unless somebody [objects/minds], I'll put {goods} on the account of {customer} and let the courier run them over to \
{city}.
Voicemail, [Monday morning/late evening]: "Um, {customer} speaking, from {city}. Put me down for {goods}. Bye!"
Once the [payment/cheque] from {customer} clears, {goods} will be flown to {city}.
If {customer} rings from {city} again, [say/tell them] that {goods} are already boxed up and paid.
[Driver/Courier], head for {city}, knock at the door of {customer} and unload {goods}.
Whatever else you forget, don't forget {goods}: {customer} is [counting on/banking on] them in {city}.
To: {customer} // [Town/Place]: {city} // [Contents/Inside]: {goods}
Packing slip | {goods} | [recipient/addressee] {customer} | {city} [depot/office]
Thank you for [shopping with us/your trust], {customer}! Your cart, namely {goods}, is being forwarded to {city}.
[Sorry for the wait/Good news], {customer}: {goods} made it through customs and roll into {city} tonight.
It was [late/raining] when {customer} walked into our {city} branch and left with {goods}.
Nobody in {city} buys like {customer}: {goods}, [all in one go/in a single visit]!
Tempted by the [sale/discount], {customer} added {goods} to the cart and typed in an address in {city}.
I, {customer}, residing in {city}, hereby [commission/reserve] {goods}.
Remember {customer}, our [regular/old friend] in {city}? Back again, and this time it's {goods}.
[Receipt/Invoice] made out to {customer}. Supplied: {goods}. Place of handover: {city}.
Could somebody [haul/cart] {goods} over to {city}? The person paying is {customer}.
Although {city} is [far off/hard to reach], {customer} prefers our store and has just requisitioned {goods}.
The {city} run [tomorrow/on Friday] includes one stop only, at the house of {customer}, who gets {goods}.
[Mom says/The boss says] we should pick up {goods} for {customer} and leave them at the flat in {city}.
[Missing/Lost] in transit to {city}: {goods}. The rightful owner, {customer}, would like them soon.
As [agreed/discussed] with {customer}, we will furnish {goods}, free to the door in {city}.
Click! With that, {customer} had checked out {goods}, choosing {city} as the [shipping address/delivery point].
Guess [whose/what] parcel weighs a ton! It's {goods} for {customer}, off to {city}.
Seven emails later, {customer} finally [made up their mind/came to a decision]: {goods}, to be picked up at the \
{city} counter.
cart[/ :] {goods} -> {customer} @ {city}
buyer={customer}; [ship/dest]={city}; lines=({goods})
So here's the [deal/plan], you hand me {goods} in {city} and I pay on the spot. Sincerely yours, {customer}
[Once again/For the second time], a postcard from {city} reached us. On it, {customer} begs for {goods}.
Let me [repeat/read that back]: {goods}, care of {customer}, {city}. Is that correct?
Whoever serves {customer} next, note that {goods} were promised and that {city} is the [right/new] address.
By [boat/train/plane], {goods} are traveling to {city} at the expense of {customer}.
Santa's list, [page one/top line]: little {customer} from {city} hopes for {goods}.
The {city} [school/hospital/hotel] lacks {goods}, which {customer} has offered to finance.
[Clerk/Agent]: And what may I bring you, {customer}? Reply: {goods}, if you please, and everything straight to {city}.
Signed, sealed, delivered! {customer} now owns {goods}, and the neighbors in {city} are [amazed/jealous].
Having [moved/relocated] to {city} last month, {customer} is furnishing the new place and picked {goods} from our \
catalog.
Since the {city} store opened, {customer} comes in [daily/every week]; today's haul consisted of {goods}.
Ticket closed: {customer} swapped the old cart for {goods} and [changed/corrected] the delivery town to {city}.
[Please/Kindly] reserve {goods} under the name {customer}; our van will collect them for {city}.
A [donor/sponsor] named {customer} purchased {goods}, which volunteers will hand out in {city}.
There's no [rush/hurry], but {customer} wouldn't mind seeing {goods} turn up in {city} by the weekend.
{city} called. It's {customer} on the line, asking whether {goods} can [still be had/be added to the bill].
[Tag/Label] them "{customer}, {city}" before you seal the crates: {goods}.
To stay [stocked/prepared] through the winter, {customer} ordered in {goods} and cleared out a garage in {city}.
Thanks to a [tip/coupon], {customer} got {goods} at half price, shipping to {city} included.
""")
