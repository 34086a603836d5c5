"""Whole texts of business cards and visits to a doctor, each of every field of a record; `kinds_of_work` has the held-out ones."""

from rtlang.model.embedded.kinds import lines

CONTACT_TEXTS = lines("""
Looking for {name}? Try {company} at {street} in {city}, postcode {zip}. The line {phone} is open [all day/till six], \
and {email} gets read every [evening/hour].
{name} joined {company} last [month/week]. The new desk is at {street}, {city}, zip {zip}; the [extension/direct \
line] is {phone} and the inbox {email} .
Having [changed jobs/moved on], {name} can now be found at {company}, {street}, {city} ({zip}). [Mobile/Cell]: \
{phone}. Mail: {email}
[Business card/Visiting card] of {name}, {company}. Front: {phone} and {email} . [Back/Other side]: {street}, {city}, \
{zip}.
{phone} is the number [to remember/you should save]. It rings at {company} in {city}, where {name} [picks \
up/answers]. By post: {street}, {zip}. By mail: {email}
The [parcel/crate] for {name} goes to {street}. City: {city}. Postal code: {zip}. Should the driver get lost, \
{company} [answers/replies] under {phone} or {email} .
[Saved/Stored] new contact: {name}; org: {company}; [cell/mobile]: {phone}; mail: {email} ; road: {street}; zip: \
{zip}; town: {city}
[BEGIN/START] CARD. NAME {name}. ORG {company}. TEL {phone}. EMAIL {email} . STREET {street}. CODE {zip}. TOWN \
{city}. [END/STOP] CARD.
hey can u [text/buzz] {name}? it's {phone}, or mail {email} . works at {company}, {street}, [thats/it's] in {city} \
({zip})
If {phone} is [busy/engaged], drop a line to {email} and {name} will call you back. [Parcels/Letters] reach {company} \
at {street}, {city}, {zip}.
[Complaints/Worries] about {company} should be addressed to {name}, {street}, {city}, code {zip}; [urgent/hot] ones \
to {phone} or {email} .
Our agent at {company} [goes by/answers to] the name of {name}, sits at {street} in {city}, zip code {zip}, and \
[responds/reacts] to {email} as well as to {phone}.
Who [runs/leads] {company}? It is {name}, whose office occupies {street}, {city}, {zip}. Phone {phone} and mailbox \
{email} are listed [too/as well].
[Cheers/Love], {name}. P.S. {company} has [given/handed] me a phone, {phone}, and a mailbox, {email} . Come round: \
{street}, {city}, {zip}!
In {city}, at {street}, a [brass plate/sign] reads {company}. Behind that door {name} works, [reachable/available] on \
{phone} and through {email} . Postcode: {zip}.
Out of office: until [Monday/next week] please turn to {name} of {company}, either by phone under {phone} or in \
writing under {email} . [Visitors/Guests] go to {street}, {zip}, {city}.
[ATTN/TO] {name} STOP CARE OF {company} STOP {street} STOP {zip} STOP {city} STOP CABLE {email} STOP [RING/PHONE] \
{phone}
Street: {street}. Place: {city}. [Postcode/Post code]: {zip}. Firm: {company}. Person in charge: {name}. \
[Landline/Line]: {phone}. Electronic mail: {email}
Found this [purse/bag]? It belongs to {name}. Please [return it/hand it in] at {company}, {street}, {city} ({zip}), \
or phone {phone}, or email {email} .
The [letterhead/header] shows {company}, {street}, {zip}, {city}. Signed: {name}. Added [by hand/in pencil]: {phone} \
and {email}
According to the [phone book/directory], {phone} leads to {name}. The entry [adds/lists] the firm, {company}, the \
address, {street}, {city} ({zip}), and an email, {email} .
Although {name} [hates/avoids] the telephone, {phone} works; {email} is the [better/safer] choice. You could also \
turn up at {company}, {street} in {city}, postal code {zip}.
Neither {phone} nor {email} [worked/helped], so I [walked/drove] over to {company} at {street}, {city}, zip {zip}, \
and wanted to see {name} in person.
Please [update/correct] the list: {name} has come back and sits at {company} [again/once more]. Street {street}, town \
{city}, code {zip}, telephone {phone}, mail {email}
[Delivery/Dispatch] note. Recipient {name}, firm {company}. Drop at {street}, {city}, {zip}. Before \
[arrival/unloading], ring {phone}. Receipt goes to {email}
[Questions/Puzzled]? {name} from {company} [knows/has] the answers. Voice: {phone}. Text: {email} . In person: \
{street}, {city} (zip {zip}).
{company} [introduces/welcomes] its new head of sales, {name}. Reach out via {email} or {phone}, or [step/drop] by at \
{street} in {city}, {zip}.
"[Write/Jot] that down," said {name}. "My number is {phone}, my mail is {email} , and {company} is [housed/quartered] \
at {street}, {city}, postcode {zip}."
To whom do I [send/post] the bill? To {name}, {company}, {street}, {city}, {zip}. Copies are [accepted/taken] at \
{email} , and doubts are solved under {phone}.
For interviews, [journalists/reporters] may approach {company}: [press officer/spokesperson] {name}, {phone}, {email} \
. Headquarters: {street}, {city}, postal code {zip}.
I swapped cards with {name} at the [fair/congress]. Now I know that {company} [resides/sits] at {street}, {city}, zip \
{zip}, that the phone is {phone} and the mail {email} .
[Emergency/Urgent] contact: {name}. Employer: {company}. [Daytime/Work] phone: {phone}. Workplace: {street}, {city}, \
{zip}. Backup: {email}
Don't send anything to the old office! From now on {name} and [the whole team/everyone] of {company} [receive/get] \
mail at {street}, {city}, {zip}. The phone is still {phone}, the email still {email} .
As secretary of {company}, {name} [handles/takes] all calls to {phone} and every message to {email} . The \
[reception/front desk] at {street} in {city} (code {zip}) is staffed too.
{street} is where {name} can be [visited/found], {city} the town, {zip} the postcode, {company} the [firm/employer], \
{phone} the phone, {email} the email.
[RSVP/Reply] to {name} by calling {phone} or writing to {email} . The [open day/party] of {company} takes place at \
{street}, {city}, zip {zip}.
[Registered/Signed up]: {name}, on behalf of {company}. Billing address {street}, {city}, {zip}. \
[Confirmation/Receipt] sent to {email} and by text message to {phone}.
Once you reach {city}, [head/make] for {street} (postcode {zip}), knock at {company} and ask to see {name}. \
[Lost/Late]? {phone} or {email} will help.
Could you [forward/pass] this to {name}? The mail is {email} , the phone {phone}, and on [paper/an envelope] it would \
be {company}, {street}, {zip}, {city}.
[Listed/Filed] under {company}: {name}, {street}, {city} ({zip}), [phone/tel.] {phone}, {email}
Anyone wishing to [join/take part] should inform {name}, who collects names at {email} and on {phone}. \
[Paper/Printed] forms are accepted by {company}, {street}, {city}, {zip}.
It was {name} who [picked up/spoke] when I tried {phone}. {company} had put the wrong mail on its [site/flyer]; \
{email} is right, and so is {street}, {city}, {zip}.
[Submit/Hand in] your resume through {email} . It will be studied by {name}, who recruits for {company}. \
[Interviews/Talks]: {street}, {city}, {zip}. Info line: {phone}.
Supplier: {company}. Agent: {name}. [Warehouse/Depot]: {street} in {city}. Postal code: {zip}. [Hotline/Helpline]: \
{phone}. Orders: {email}
The [flyer/leaflet] promises that {name} will advise you for free. Just give {company} a [ring/call] at {phone}, or \
use {email} , or walk into {street}, {city}, {zip}.
You [asked/wondered] how to reach our lawyer. {name} practises with {company}; the rooms are at {street}, {city}, \
{zip}; messages may be [left/spoken] on {phone} or typed to {email} .
Following the [merger/election], {name} represents {company} in {city}. Office: {street}, {zip}. [Switchboard/Desk \
phone]: {phone}. Secretariat: {email}
My old friend {name} has [opened/founded] a firm named {company}. Its door is at {street}, {city} ({zip}), its \
[phone/line] is {phone}, and {email} is its mail.
On the back of the [photo/ticket] someone [scribbled/noted]: {name}, {phone}, {email} , employee of {company}, \
{street}, {city}, {zip}.
Unless you hear from {name} [today/this week], [complain/protest] to {company}: {street}, {city}, postcode {zip}, \
telephone {phone}, mail {email}
[Speaking/Talking] of {company}, its owner {name} has a new number, {phone}, a new email, {email} , and new \
[rooms/premises] at {street} in {city}, zip {zip}.
Zip: {zip}. City: {city}. Street: {street}. Mail: {email} . Tel: {phone}. [Firm/Business]: {company}. [Who/Full \
name]: {name}.
Since the [lift/elevator] is broken, {name} receives clients of {company} downstairs at {street}, {city}, {zip}. \
[Announce/Introduce] yourself by {phone} or {email} .
Ring {phone}, say you want {name}, and {company} will [connect you/put you through]. [Writers/Shy people] prefer \
{email} , walkers {street} in {city} ({zip}).
Hello [again/there]! As promised, here is where {company} [hides/lives]: {street}, {city}, {zip}. Wave to {name}, or \
send a message first, to {phone} or {email} .
This card was [handed/slipped] to me by {name}. It [bears/displays] the name of the firm, {company}, a phone number, \
{phone}, an email, {email} , and an address: {street}, {city}, {zip}.
{name} * {phone} * {email} * {company} * {street} * {city} * {zip}
[Return to sender/If undelivered, return to]: {company}, {street}, {zip}, {city}. [Handled/Processed] by {name}, \
phone {phone}, mail {email}
[Tenants/Residents] of {street}, {city}, {zip}: {company}. Bell: {name}. The caretaker [calls/phones] {phone} or \
mails {email} .
Please [greet/hug] {name} from me when you are in {city}. {company} is on {street}, zip {zip}; better \
[announce/arrange] your visit under {phone} or {email} .
""")

VISIT_TEXTS = lines("""
Complaining of {symptom}, {patient}, who is {age}, consulted {doctor} on {date} and [walked out/went home] with a \
prescription for {medicine}.
[Mum/Dad] took {patient} to {doctor} on {date}, as the {age}-year-old kept moaning about {symptom}; {medicine} is \
supposed to fix it.
A course of {medicine} was started by {doctor} on {date} after {patient}, {age} years old, [mentioned/described] \
{symptom}.
Dear colleague, I examined {patient} (age {age}) on {date} for {symptom} and [began/started] treatment with \
{medicine}. Kind regards, {doctor}
{doctor} here. Please [dispense/hand over] {medicine} to {patient}, {age}, whom I diagnosed with {symptom} on {date}.
"How long have you had {symptom}?" [asked/inquired] {doctor} on {date}. {patient}, {age}, answered "a week" and was \
put on {medicine}.
PHARMACY SLIP -- issue {medicine} -- to {patient}, age {age} -- signed {doctor}, {date} -- [against/for] {symptom}
Did {patient} ever get help with {symptom}? [Yes/Sure], {doctor} suggested {medicine} on {date}, quite normal for \
someone of {age}.
Since {symptom} would not go away, {patient} rang {doctor}, who on {date} told the {age}-year-old to [swallow/try] \
{medicine}.
Record opened {date}. Name {patient}; years {age}; presents {symptom}; physician {doctor}; [drug/remedy] {medicine}.
At the age of {age}, {patient} had never known {symptom} before. On {date} the family called {doctor}, who \
[administered/supplied] {medicine}.
{medicine} will do the trick, {doctor} assured {patient} on {date}; at {age}, {symptom} is [nothing to fear/no \
disaster].
[omg/ugh] finally saw {doctor} on {date}, got {medicine} for {symptom}. signed, {patient}, {age} and tired
Troubles with {symptom} brought {patient} to the practice of {doctor} on {date}. Being {age}, the patient was \
[offered/handed] {medicine}.
Following an examination on {date}, {doctor} concluded that {medicine} would relieve {symptom} in {patient}, [a \
person of/now] {age}.
The nurse [wrote/typed]: {patient}, {age} yrs, c/o {symptom}, seen {date}, {doctor} orders {medicine}.
My [neighbor/friend] {patient} just turned {age} and already battles {symptom}. Luckily {doctor} found time on {date} \
and recommended {medicine}.
Once {doctor} had listened to {patient} describing {symptom} on {date}, a packet of {medicine} changed hands; age on \
the [form/card]: {age}.
What helps against {symptom}? For {patient}, aged {age}, {doctor} picked {medicine} [during/at] the appointment of \
{date}.
Insurance claim: insured {patient}, age {age}; treating physician {doctor}; date of treatment {date}; \
[cause/diagnosis] {symptom}; drug billed {medicine}.
On {date} I, {patient}, {age}, could not bear {symptom} any longer, so I asked {doctor} for help and \
[received/accepted] {medicine}.
A sleepless night with {symptom} [sent/drove] poor {patient}, {age}, straight to {doctor}; the receipt, stamped \
{date}, lists one box of {medicine}.
Not {symptom} again! For the third time {patient}, {age}, knocked at the door of {doctor}; this time, on {date}, the \
[cure/answer] was {medicine}.
To whom it may concern: {patient}, aged {age}, was under my care on {date} owing to {symptom} and [requires/needs] \
{medicine}. {doctor}
If {symptom} returns, {patient} ({age}) must keep taking {medicine}, [as/just as] {doctor} instructed on {date}.
Daily log {date}: {doctor} attended to {age}-year-old {patient}. Main problem {complaint}. [Drug/Remedy] issued \
{medicine}.
Thanks to {doctor}, {patient} no longer worries about {symptom}: {medicine}, started on {date}, [works/helps] fine \
even at {age}.
Suffering badly, {patient} described {symptom} to {doctor}. It was {date}, the patient was {age}, and {medicine} \
[seemed/looked like] the right choice.
Clinic news: {date} saw {patient}, {age}, [limp/stumble] in on account of {symptom}, whereupon {doctor} administered \
{medicine}.
{patient}'s file shows an age of {age}, a visit to {doctor} dated {date}, {complaint} as the [reason/ground], and \
{medicine} as the remedy.
[Reminder/Note] to {patient}: continue {medicine} as agreed with {doctor} on {date}. It treats {symptom}. Your age in \
our system: {age}.
When asked by {doctor} what was wrong, the {age}-year-old {patient} replied "{complaint}" and [obtained/collected] \
{medicine} on {date}.
Despite being only or already {age}, {patient} endures {symptom}; hence {doctor}, on {date}, [approved/authorised] \
{medicine}.
Tel. call {date}: {patient} ({age}) wants advice on {symptom}. [Forwarded/Passed on] to {doctor}, who okays \
{medicine}.
Prescribing {medicine} was the decision {doctor} reached on {date}, seeing that {patient}, {age}, had \
[developed/caught] {symptom}.
Could you check {patient}, {age} years, please? {symptom} since yesterday. [Reply/Answer] from {doctor}, {date}: \
start {medicine}.
The {age}-year-old who came about {symptom} on {date} is called {patient}, and {doctor} [treats/manages] the case \
with {medicine}.
[Grandpa/Uncle] says {doctor} cured {patient} of {symptom}: on {date} out came the {medicine}, never mind that the \
patient is {age}.
{date} / {doctor}'s surgery. {patient}, born {age} years ago, laments {symptom}. Rx: {medicine}.
Age {age}, name {patient}, trouble {complaint}, day {date}: so reads the [sheet/page] on which {doctor} ordered \
{medicine}.
Every morning {patient} takes {medicine}, because {doctor} discovered {symptom} during the [check-up/examination] on \
{date}. The patient has lived {age} years.
Neither rest nor tea had eased {symptom}, so {doctor} switched {patient}, {age}, [over/straight] to {medicine} on \
{date}.
Please book {patient} with {doctor} on {date}; the issue is {complaint}, the patient is {age}, and {medicine} is \
already being [taken/used] on the doctor's advice.
Sent home with {medicine}: {patient}, {age}, who had [approached/contacted] {doctor} about {symptom} on {date}.
I remember {date} well, [writes/recalls] {doctor}: {patient} arrived pale, {age} years old, gripped by {symptom}. We \
went for {medicine}.
Patient card * {patient} * {age} y * {date} * {doctor} * presenting with {complaint} * [prescription/therapy] \
{medicine}
{symptom} is what made {patient}, {age}, seek out {doctor}. On {date} the two of them [settled/agreed] on {medicine}.
Only {medicine} calms {symptom}, [claims/insists] {patient}, aged {age}, and {doctor} confirmed it at the \
consultation held on {date}.
Hi {doctor}, [many/warm] thanks for {date}! The {medicine} you chose is beating {symptom}. Best wishes from {patient} \
({age})
Under {doctor}, who works at our clinic, {patient} received {medicine} from {date} onward; {symptom} had \
[appeared/shown up], and the patient counts {age} years.
For {patient}'s sake we [hurried/drove] to {doctor} on {date}: {age} years old and {symptom}! Now {medicine} is on \
the bedside table.
ADMISSION {date}. PT {patient}. AGE {age}. CC {complaint}. MD {doctor}. MEDS {medicine}. [STABLE/DISCHARGED].
Whoever treats {patient} next should know that {doctor} prescribed {medicine} on {date}. The {age}-year-old was \
[struggling/fighting] with {symptom}.
{age} candles on the cake and {symptom} as a present: poor {patient}! {doctor} [squeezed in/arranged] a visit on \
{date} and dispensed {medicine}.
Let it be noted that {doctor}, on {date}, freed the patient {patient} (aged {age}) from {symptom} by [means/use] of \
{medicine}.
Referred with {symptom}, the patient {patient} met {doctor} on {date}; at {age}, a dose of {medicine} was \
[considered/judged] safe.
There sat {patient}, {age}, holding a note from {doctor} dated {date}, which [ordered/read]: "{medicine}, three times \
daily, for {complaint}".
Q: Why does {patient} need {medicine}? A: {symptom}, [established/confirmed] by {doctor} on {date}. Q: Age? A: {age}.
Sore or not, {patient} postponed the visit until {date}, when {doctor} heard about {symptom}, looked at the age \
({age}) and [reached for/fetched] {medicine}.
Pick up {medicine} from the chemist for {patient}, would you? {doctor} [phoned/called] it in on {date} to stop \
{symptom}, the dose being right for age {age}.
""")
