"""Whole texts of job ads and invoices, each of which tells every field of a record. Held-out ones are in `kinds_of_work`."""

from rtlang.model.embedded.kinds import lines

VACANCY_TEXTS = lines("""
Wanted [at once/without delay] in {city}: {a_job} for {company}. The [wage/paycheck] amounts to {salary}, provided \
you feel at home with {needs}.
{salary} a year [awaits/goes to] the {title} whom {company} picks for its [branch/site] in {city}; proof of {needs} \
is expected.
Having opened a branch in {city}, {company} [now/at present] recruits {a_job}. Candidates [who are strong in/with a \
background in] {needs} may count on {salary} per year.
My cousin tells me {company} still lacks {a_job} over in {city}. With {needs} on your [resume/CV] you could be \
[making/getting] {salary}.
[Good at/Clever with] {needs}? Then send your papers to {company}, which will post you to {city} as its {title} and \
[transfer/wire] {salary} to you every year.
{needs} will open the door for you at {company}: its office in {city} [must fill/has to fill] the post of {title}, \
and the post [carries/comes with] {salary} a year.
Due to [strong demand/a full order book], {company} is adding {a_job} to its [staff/crew] in {city}. Annual income \
{salary}; experience in {needs} is essential.
The [post/role] of {title} has fallen vacant. It is based in {city}, is [rewarded/remunerated] with {salary}, calls \
for {needs}, and belongs to the firm {company}.
Nobody at {company} can replace our old {title}, so we turn to you: move to {city}, [show/bring] us your {needs}, and \
[pocket/bag] {salary} a year.
[JOB ALERT/NEW VACANCY] - role: {title} - where: {city} - who: {company} - how much: {salary} - [must have/must \
know]: {comma}
Help wanted in {city}. {company} requires {a_job}; knowing {needs} is half the [job/battle], and {salary} a year is \
the [reward/prize].
[Guess what/Listen]: they advertised my dream job! Being {a_job} for {company}, right here in {city}, on {salary} a \
year, and all they insist on is {needs}.
If you can [prove/demonstrate] {needs}, {company} would [gladly/happily] appoint you {title} in {city}, with {salary} \
as your yearly income.
No {needs}, no contract: that is the [rule/law] at {company}, where the next {title} will [collect/receive] {salary} \
a year in {city}.
Without {needs} you need not [bother/try]. Everyone else may compete for the {title} job that {company} announced in \
{city}, [worth/endowed with] {salary} per year.
Dear [Sir or Madam/Madam], allow me to apply for the position of {title} which {company} advertised in {city}. I \
learned {needs} at school, and the {salary} you [mention/name] would suit me well.
{company} to Hire {title} in {city}: {salary} [Offered/Promised], {needs} [Demanded/Requested]
{city} - Local firm {company} announced on Monday that it will take on {a_job}. [According to/As stated in] the \
notice, {salary} is budgeted per year, and applicants get [tested/examined] on {needs}.
Pay grade: {salary}. [Duty station/Post]: {city}. Function: {title}. Hiring [body/firm]: {company}. Qualifications: \
{comma}.
[Log/Info]: vacancy saved; title = {title}; employer = {company}; place = {city}; [annual pay/wage] = {salary}; tags \
= {comma}
One desk is still [empty/free] in {city}. Sit down at it as the new {title} of {company}, put your {needs} to use, \
and {salary} a year will [land in your pocket/be yours].
Whether you come from near or far, {city} is where {company} [wants/would like] you, as {a_job} skilled in {needs} \
and [rewarded/thanked] with {salary} a year.
Recruiter here! My client {company} is out to [hire/catch] {a_job}. Budget: {salary}. Base: {city}. Toolbox: {comma}. \
[Ping me/Message me].
hey, u still job hunting? {company} has [an opening/a spot] in {city} for {a_job}, {salary} a year, u just \
[gotta/have to] be good with {needs}
[SEEK/HIRE] {title} STOP PLACE {city} STOP {salary} YEARLY STOP [MUST HANDLE/MUST KNOW] {comma} STOP WIRE {company}
To be filled by [spring/autumn]: the job of {title}, based in {city}. The [successful/lucky] applicant has practised \
{needs} and receives {salary} a year from {company}.
What does it take to be chosen as {title} by {company}? [Only/Just] {needs}, a flat in {city}, and the wish to [bring \
home/bank] {salary} a year.
Why not swap your [boss/old employer] for {company}? As {a_job} in {city} you would [gross/see] {salary} a year, and \
your {needs} would at last be appreciated.
Trained in {needs}, are you? Knock at the door of {company} in {city}: they have been short of {a_job} for \
[months/weeks] and won't [go/bid] below {salary}.
"We cannot [find/spot] {a_job} anywhere in {city}," complains the head of {company}, who has [put/laid] {salary} on \
the table for anyone versed in {needs}.
[Grandma/Dad] cut this out of the paper for you: {company}, {city}, seeking {a_job}, must understand {needs}, \
[wages/income] {salary} yearly.
Starting next [month/week], one {title} will be employed by {company} at its site in {city}. [Gross/Yearly] income: \
{salary}. Prior training: {comma}.
Internal notice: the department in {city} is [short of/missing] {a_job}. {company} has set aside {salary} for the \
role; colleagues trained in {needs} may [step forward/raise a hand].
{title} (m, f, d) for {city}. You have {needs} at your fingertips, we have {salary} for you. [Yours/Cheers], {company}
Not every {title} is worth {salary}. At {company} in {city} you [are/will be], as long as {needs} can be \
[found/counted] among your talents.
Though {salary} may sound like a lot, {company} is [happy/ready] to spend it on {a_job} who commands {needs} and \
[settles/lives] in {city}.
Our [ideal/perfect] {title} stays in {city}, loves {needs}, dreams of {salary} a year and [signs/makes a contract] \
with {company}.
[Hurry up/The post closes on Friday]! Submit your file to {company} if {a_job} is what you are, {city} where you \
live, {salary} what you hope for and {needs} what you studied.
Requirements: {comma}. [Perks/Benefits]: {salary} every year. [Setting/Scene]: {city}. Mission: serve {company} as \
{title}.
Remuneration of {salary} per annum is attached to this [appointment/office]. {company} invites any {title} conversant \
with {needs} to [come forward/get in touch]; the workplace is {city}.
Since the last one [retired/left], the plant in {city} has been without {a_job}. {company} intends to change that by \
paying {salary} to [somebody/a person] well trained in {needs}.
Dear [Madam/colleague], after seeing your {needs} at work, we at {company} propose that you become our {title} in \
{city}. Would {salary} a year [suit/please] you?
Openings: one. [Nature/Kind]: {title}. Firm: {company}. [Seat/Town]: {city}. Consideration: {salary}. Prerequisites: \
{comma}.
You supply the {needs}, {company} supplies the [money/cash]: {salary} for each year that you [serve/toil] as {title} \
at our works in {city}.
[Tip from a friend/Psst]: in {city} the people of {company} are desperate to get hold of {a_job}. Ask for {salary}; \
they will [agree/say yes] once they see how well {needs} comes to you.
[Seen on the notice board/On the blackboard]: {company}, branch {city}. Vacancy: {title}. Reward: {salary}. \
[Bring/Show] certificates in {comma}.
[Rumor/Word] has it that {salary} could be yours. Just persuade {company} in {city} that you are {a_job} with a \
[gift/talent] for {needs}.
Calling every {title} out there! [Pack your bags/Buy a ticket] for {city}, impress {company} with your {needs}, and \
[cash in/rake in] {salary} a year.
[Greetings from/News from] {city}: here {company} craves {a_job}. Nobody minds your age or your looks, but {needs} \
must be in your blood. {salary} gets [deposited/paid out] per year.
Whoever [lands/wins] the job of {title} will report to {company}, relocate to {city}, apply {needs} every day and \
[draw/make] {salary} a year.
{needs}: if that describes you, then {company} has [reserved/kept] the seat of {title} for you, complete with \
{salary} a year and a [view/window] over {city}.
Because {company} is expanding to {city}, {salary} has been [earmarked/set apart] for {a_job}. The [interview/test] \
will focus on {needs}.
As {title} you will deal with {needs} from morning till night. {city} will be your [home/base], {company} your \
employer, {salary} your yearly [reward/return].
{city} * {company} * {title} * {salary} [p.a./per annum] * {comma}
Applicants lacking {needs} will be [turned down/refused], says {company}. All others can [hope for/look forward to] \
{salary} and the rank of {title} in {city}.
Fancy a change of scene? {city} is [lovely/green], {company} is friendly, {salary} a year is decent, and your days as \
{title} would [revolve around/be filled with] {needs}.
The union [won/fought for] {salary} a year for each {title} whom {company} employs in {city}. A place has become \
free; the [exam/test] covers {needs}.
Subject: {title}, {city}. Thanks for your [call/letter]. {company} confirms a yearly figure of {salary} and [once \
more/again] stresses the need for {needs}.
Photo: the {city} headquarters of {company}, which is advertising for {a_job}. The contract [guarantees/secures] \
{salary} a year and [demands/presumes] {needs}.
Both of us would [profit/gain]: you by {salary} a year, {company} by the {needs} that {a_job} like you can \
contribute. We [meet/start] in {city}, where the job is.
""")

INVOICE_TEXTS = lines("""
Kindly remit {total} in {currency} to the account of {company}, {city}, so that [bill/invoice] {number} is \
[cleared/closed] by {due}.
Having delivered the goods, {company} of {city} now [expects/demands] {total} (currency: {currency}). The claim \
[runs/goes] under {number} and falls due on {due}.
{due} is the [last day/final day] for {number}, the invoice with which {company}, based in {city}, \
[collects/requests] {total} in {currency}.
[Boss/Hey], the people from {city} rang again. They are called {company} and insist on {total}, in {currency} [of \
course/as always], by {due}, for their bill {number}.
Unless {company} in {city} sees {total} in {currency} by {due}, [its lawyers/the lawyers] will take over. [It \
concerns/The matter is] invoice {number}.
[INVOICE/BILL] no. {number} | issued by {company}, seat {city} | payable: {total} | currency: {currency} | \
[deadline/pay by]: {due}
Amount payable {total}, [stated/expressed] in {currency}; deadline {due}; [reference/ref.] {number}; issuer \
{company}, {city}.
We [hereby/herewith] bill you for our services. Reference: {number}. Please [wire/send] {total} in {currency} before \
{due} has passed. {company}, {city}
[Ledger/Journal] entry: {number}, creditor {company} of {city}, open balance {total}, booked in {currency}, \
[maturity/falling due] {due}.
[System/Bot]: document {number} scanned. Sender = {company}. Place = {city}. Sum = {total}. Currency = {currency}. \
[Pay date/Due date] = {due}.
What is still [open/unpaid]? Just one bill, {number}. Its sender {company}, at home in {city}, hopes to be {total} \
richer, in {currency}, and [puts up with us/holds still] until {due}.
Nothing has been paid on {number} [yet/so far]. {company} ({city}) grants us until {due} to [hand over/come up with] \
the {total}, calculated in {currency}.
Although {due} seems far off, let us not [forget/overlook] that {company} from {city} invoiced us, under {number}, \
for {total} in {currency}.
{company} [wrote/replied] to us from {city}: "Your order came to {total}, charged in {currency}. [Quote/Mention] \
{number} when you pay, and pay by {due}."
The accountant [filed/stamped] {number} this morning: {total} to go out in {currency} to {company}, {city}, [no later \
than/not after] {due}.
[TO PAY/OWED] {total} STOP CURRENCY {currency} STOP BILL {number} STOP [LATEST/DEADLINE] {due} STOP REGARDS {company} \
OF {city}
My [roof/car] has been repaired. {company}, a firm in {city}, will cost me {total} in {currency}; the bill is \
numbered {number} and has to be [dealt with/paid] by {due}.
For the [attention of accounts/cashier]: release {total}, denominated in {currency}, in favour of {company}, {city}, \
[value date/pay day] {due}, reference {number}.
If you [clear/settle] {number} by {due}, no fee is added to the {total} that {company} of {city} [asked for/set down] \
in {currency}.
How long do we have? [Till/Until] {due}. How much? {total}. In which money? {currency}. To whom? {company} in {city}. \
Under [which/what] number? {number}.
A debt of {total} has been [hanging over us/on our list] since {company}, headquartered in {city}, issued {number}. \
It is counted in {currency} and must [vanish/be gone] by {due}.
Oh [no/dear], another bill! {number}, this time. {company} over in {city} is after {total}, no cheques, [just/only] \
{currency}, on {due} at the latest.
From {city}, where {company} has its office, [we received/there reached us] invoice {number}: a [claim/demand] of \
{total} in {currency} maturing on {due}.
{currency} is the currency, {total} the [sum/amount], {due} the deadline, {number} the bill, and {company} of {city} \
the one who [gets/cashes] it all.
Dear [customer/client], according to our books {number} remains unpaid. We [trust/hope] that {total} will arrive in \
{currency} by {due}. Sincerely, {company}, {city}
[Mark/Circle] {due} in your calendar! On that day {company} of {city} debits us with {total} in {currency} for \
[invoice/bill] {number}.
Payment [slip/form]. Beneficiary: {company}. Domicile: {city}. [Purpose/Reason]: {number}. {currency}: {total}. \
Execute by: {due}.
Can you [approve/sign] {number}? It stems from {company} in {city}, totals {total}, is made out in {currency} and \
[wants settling/needs paying] by {due}.
I [refuse to/can hardly] believe it, but {company} from {city} really charged {total} in {currency}. See for yourself \
in {number}, and [note/mind] the deadline: {due}.
Since the goods were [fine/perfect], there is no reason to hold back the {total} that {company}, {city}, has earned \
in {currency} with bill {number}. [Last day/Deadline]: {due}.
Once {number} is [paid/off the table], we are even with {company}. The firm, which hails from {city}, must \
[get/obtain] {total} in {currency} by {due}.
[Note on the fridge/Sticky note]: {company} ({city}), bill {number}, {total} in {currency}, don't [miss/forget] {due}!
As [agreed/arranged], {company} invoices you {total} today. Currency {currency}, document {number}, [term of \
payment/payment term] {due}, place of business {city}.
The [court/judge] ordered that {total} be handed over to {company}, a trader from {city}, by {due}. The \
[dispute/quarrel] was about invoice {number}, written in {currency}.
Sorry for the [delay/wait]! I will transfer the {total} for {number} by {due}, in {currency} as requested. \
[Greetings/Love] to everyone at {company} in {city}.
Open [bills/items]: {number}. Creditor: {company}, with its seat in {city}. [Still open/Remaining]: {total} \
({currency}). Final date: {due}.
Not a [cent/penny] less than {total} will satisfy {company} of {city}. They reckon in {currency}, cite {number} and \
[set/name] {due} as the limit.
Between now and {due}, [somebody/one of us] has to go through invoice {number} and [forward/post] {total}, in \
{currency}, to {company} at its office in {city}.
The [courier/postman] dropped off an envelope. Inside: {number}, a bill by {company} from {city} that [sets us \
back/costs us] {total} in {currency} and allows us time until {due}.
Firm: {company}. [Hometown/Located in]: {city}. Bill no: {number}. Sum owed: {total}. Money: {currency}. \
[Cut-off/Limit]: {due}.
Subject: {number}. {company}, {city}, [requests/asks for] payment of {total}. Accepted currency is {currency}. [Time \
limit/The limit] is {due}.
{total}! That is what {company} (from {city}) [has the nerve/dares] to put on {number}. At least it is in {currency}, \
and we may [wait/sleep on it] until {due}.
"Whose bill is this?" - "It [belongs to/was written by] {company}, {city}. Number {number}, {total}, in {currency}, \
to be [cleared/done] on {due}."
Late fees [apply/start] after {due}. To avoid them, clear invoice {number} by [sending/mailing] {total} in {currency} \
to {company} in {city}.
Both the bill number, {number}, and the sum, {total}, are printed in [bold/red]. {company} in {city} does business in \
{currency} and [gives/leaves] you until {due}.
Our debt towards {company} will be [wiped out/history] on {due}, when {total} [leaves/sets off] for {city}. \
{currency} is the currency and {number} the bill.
Billed by: {company}, [town of/town:] {city}. Billed under: {number}. Billed sum: {total}. Billed in: {currency}. \
[Payment target/Target date]: {due}.
Tell {company} in {city} that their invoice {number} has been [checked/verified] and that the {total} will \
[follow/arrive] in {currency} on {due}.
According to {number}, the [work/repair] was priced at {total}. {company}, the craftsmen from {city}, [accept/take] \
{currency} only and would love to have it before {due}.
This is to remind you that {due} is [approaching/near]. Under {number} you still have {total} to [pay/bring in], in \
{currency}, to us, {company}, at our office in {city}.
Would you mind [paying/handling] {number} for me? {company} is the name, {city} the place, {total} the [price/amount] \
in {currency}, and {due} the deadline.
It was from {city} that {company} [faxed/emailed] invoice {number}, under which {total} must be [credited/booked] in \
{currency} by {due}.
The grand total on [bill/invoice] {number} reads {total}. Convert nothing, the bill is in {currency}; {company} of \
{city} will be [pleased/glad] to have it by {due}.
Thank you for [shopping/ordering] at {company} in {city}! Your invoice {number}: {total} [charged/calculated] in \
{currency}, pay later, by {due}.
{number} * {due} * {total} in {currency} * {company} * {city}
[Auditors/Checkers] found that {number} had been overlooked. {company}, located in {city}, was [promised/assured] \
{total} in {currency} by {due}.
Shall we pay {company} [early/ahead of time]? Invoice {number} gives us until {due}, but the firm, which sits in \
{city}, would [welcome/like] its {total} in {currency} sooner.
Whoever [handles/makes] payments: {total}, please, in {currency}, to {city}, payee {company}, [before/by] {due}, and \
mention {number}.
With document {number}, the wholesaler {company} from {city} lays claim to {total}; the currency [agreed upon/settled \
on] was {currency}, the [day of payment/pay day] {due}.
Voucher {number} [certifies/attests] a debt of {total} towards {company} from {city}. It shall be [redeemed/paid off] \
in {currency} on {due}.
""")
