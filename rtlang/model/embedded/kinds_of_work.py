"""Kinds of records about work: job ads, invoices, contacts, and visits to a doctor."""

from rtlang.model.embedded import clauses_more
from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.clauses_of_work import CONTACT, INVOICE, VACANCY, VISIT
from rtlang.model.embedded.extras import DEPARTMENT, EMAIL, PAID, PHONE, REMOTE, URGENT_OF_CASE, WEBSITE, Value
from rtlang.model.embedded.kinds import Drawn, Kind, lines, money
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.text_files import lines_of
from rtlang.model.embedded.words import Draw, article, listing


def draw_vacancy(draw: Draw) -> Drawn:
    job = draw.slot(lex.JOBS, lex.HELD_JOBS)
    skills: list[str] = []
    for _ in range(draw.number(1, 4)):
        skill = draw.slot(lex.SKILLS)
        if skill not in skills:
            skills.append(skill)
    return {
        "company": draw.company(), "title": job, "city": draw.place_name(), "salary": draw.number(18, 180) * draw.pick((100, 1000, 500)),
        "skills": [*skills],
    }, {"a_job": article(job), "needs": listing(skills), "comma": ", ".join(skills)}  # fmt: skip


vacancy = Kind(
    "job ad", words("job ad|vacancy|job offer", "|"), draw_vacancy,
    lines("""
{company} is [looking for/searching for/trying to find] {a_job} in {city}. You know {needs}. The [salary/pay] is {salary}.
We are hiring {a_job}! [Place of work/Location/City]: {city}. Skills: {comma}. [Salary/Pay]: {salary}. Apply at {company}.
[Job/Title/Position]: {title}. [Company/Employer]: {company}. City: {city}. Salary: {salary}. Skills: {comma}.
Join {company} in {city} as {a_job} and [earn/get/take home] {salary}. We ask for {needs}.
{company} in {city} [pays/offers/grants] {salary} for {a_job} with skills in {needs}.
[Open position/Vacant position/Job offer] at {company}: {title}, {city}, {salary} a year. [Needed/Required]: {comma}.
Do you [know/master] {needs}? {company} in {city} needs {a_job} and [offers/pays] {salary}.
Are you {a_job}? {company} offers {salary} in {city}. [Required/Needed/Expected]: {needs}.
In {city}, {company} [wants to hire/would like to hire/is hiring] {a_job}. Required skills are {needs}. Pay: {salary}.
The company {company} has a job for {a_job} in {city}. It pays {salary}. Skills in {needs} are [a must/needed].
For {salary} a year you can [work/start] as {a_job} at {company} in {city} if you [know/bring] {needs}.
{title} wanted in {city} ({company}). [Skills/Skills needed]: {comma}. [Salary/Pay] {salary}.
Our team in {city} needs {a_job} with knowledge of {needs}. {company} [offers/pays/grants] {salary}.
{company} [seeks/needs/wants] {a_job}. Skills: {needs}. Location: {city}. Yearly [salary/pay]: {salary}.
[Good news/Great news] for [everybody who knows/those who know/those who master] {needs}: {company} wants {a_job}. The office is in \
{city} and the salary {salary}.
I [read/heard] that {company} pays {salary} a year in {city}. They [want/need] {a_job}, and you have to know {needs}.
The salary is {salary}. The job is in {city}. The employer is {company}. [The title is/You work as] {title}. You bring {comma}.
[Location/City]: {city}; [employer/company]: {company}; position: {title}; salary: {salary}; skills: {comma}
[Dear applicant/Hello], thank you for your interest. {company} would pay you {salary} as {a_job} in {city}, but {needs} must be known \
to you.
Become {a_job}! {company} is [growing/getting bigger] and has room for new people in {city}. Bring {needs} and earn {salary}.
[Vacant/Open/New] since today: {title} at {company}, {city}. Whoever applies must master {needs}. [We pay/The pay is] {salary}.
Who knows {needs}? That person can earn {salary} with {company}. The place of work is {city}, and the [job/title] is {title}.
[Looking for work/Tired of your old job]? Move to {city} and work for {company} as {a_job}. {salary} per year, skills: {comma}.
{title} | {company} | {city} | {salary} per year | {comma}
Skills in {needs} [are what we want/count most]. If you have them, {company} makes you {a_job}, [gives/pays] you {salary} a year, and \
welcomes you in {city}.""") + lines_of("vacancy"),
    lines("""
Work with us at {company}: as {a_job} in {city} you bring {needs} and take home {salary}.
Vacant in {city}: {title}. The employer {company} grants {salary} to those who master {needs}.
Whoever masters {needs} can become {a_job} with {company}, {city}, at {salary} per year.
{salary} yearly awaits {a_job} in {city}; apply to {company} if {needs} are your skills.
Hired by {company} as {a_job}, you would earn {salary} and need {needs}. The work is in {city}."""),
    (EMAIL, PHONE, WEBSITE, REMOTE),
    lines("""
[Get hired by/The company is/The employer is/You will work for/Please apply at/The job is with] {company}.
[Company/Employer/Firm/Offered by/Apply at]: {company}.
[We are/This is/Join our team at/Come and work at/Become part of] {company}.
{company} is [hiring/looking for new people/growing and needs help].
[We are looking for/We need/We want to hire/We are hiring/They seek] {a_job}.
[Title/Job/Position/Job title/Wanted]: {title}.
[The job title is/The position is called/The title of the job is/The vacant position is] {title}.
[Are you/Do you want to become/Would you like to work as/Could you imagine being] {a_job}? [Read on./Come to us./You are right here.]
[The job is in/The place of work is/You will work in/The office is in/It is located in] {city}.
[City/Location/Place of work/Town/Office]: {city}.
[A job awaits you in/You should live near/We are based in/Our team sits in/You would move to] {city}.
[The salary is/The pay is/You earn/You get/The yearly salary is] {salary}.
[Salary/Pay/Yearly salary/Salary per year/Pay per year]: {salary}[./ a year.]
[We pay/We offer/They grant/You take home/The job pays] {salary} [a year/per year].
[You know/You should know/You must know/You have to know/You master] {needs}.
[Skills/Required skills/Needed/Required/Skills needed/You bring]: {comma}.
[Whoever already masters this can apply:/We ask for/The job needs skills in/It takes knowledge of/We expect skills in/You bring] {needs}.
[Do you know/Do you have skills in/Can you offer/Do you master] {needs}? [Apply now./That is what we need./Perfect.]
{company} [needs/seeks/wants/is looking for/would like to hire] {a_job}.
{company} [pays/offers/grants] {salary} [a year/per year].
{company} [is in/is based in/has its office in/is located in] {city}.
{company} [asks for/wants/expects/values] skills in {needs}.
[The salary of/The pay for] {a_job} is {salary}.
[As/If you work as] {a_job} you [earn/get/take home] {salary} [a year/per year].
[Whoever wants to be/To work as/To become] {a_job} you need {needs}.
[There is/We have] a job for {a_job} in {city}.
[A job in/Work in] {city} with {salary} [a year/per year].
[{title} wanted/Wanted: {title}] in {city}.
[Open position/Vacant/New job] at {company}: {title}."""),
    aliases={"a_job": "title", "needs": "skills", "comma": "skills"},
    clauses=VACANCY + clauses_more.VACANCY,
)  # fmt: skip


def draw_invoice(draw: Draw) -> Drawn:
    total, spelled = money(draw)
    company, city = draw.company(), draw.place_name()
    currency = draw.pick(("EUR", "USD", "GBP", "CHF", "JPY"))
    return {
        "number": draw.any_code(), "vendor": {"name": company, "city": city}, "total": total, "currency": currency,
        "due": draw.any_date(),
    }, {"company": company, "city": city, "total": spelled}  # fmt: skip


invoice = Kind(
    "invoice", words("invoice|bill", "|"), draw_invoice,
    lines("""
[Invoice/Bill] {number} from {company}, {city}: {total} {currency}, [due on/payable by/to be paid by] {due}.
{company} in {city} [sent/has sent/mailed us] invoice {number} over {total} {currency}. It is [due on/payable by] {due}.
Please [pay/send/transfer] {total} {currency} to {company} ({city}) by {due}. Invoice [number/no.]: {number}.
The total of invoice {number} is {total} {currency}. [Pay it/Settle it] by {due}. {company}, {city}
Bill number {number}. [Vendor/Supplier/From]: {company}, {city}. [Total/Amount]: {total} {currency}. Due: {due}.
We owe {company} from {city} {total} {currency}. The invoice is {number}, [due/payable by] {due}.
Due {due}: {total} {currency} for {company}, {city}, invoice {number}
By {due} we [have to/must/need to] pay invoice {number} of {company} in {city}. The [amount/total] is {total} {currency}.
{company}, {city}. Invoice {number}. Amount: {total} {currency}. [Payable until/Payable by/Due on] {due}.
Our supplier {company} from {city} [asks for/wants/charges] {total} {currency} by {due}. See invoice {number}.
[Attached you find/Enclosed is/Here is] invoice {number} for {total} {currency}. It is due on {due}. [Regards/Best wishes], {company}, \
{city}
Invoice no. {number}, {company} of {city}, [is/is over] {total} {currency} and must be paid by {due}.
A bill from {city} came in: {company} [wants/asks for/charges] {total} {currency} until {due}. Number {number}.
{number}: {company} ({city}) - {total} {currency} - due {due}
[Reminder/Last reminder]: {company} [still waits/waits] for {total} {currency}. The invoice has the number {number}, was due on {due}, \
and came from {city}.
The firm {company} is located in {city}. It [charges/billed] us {total} {currency} with invoice {number}, and we [pay/settle it] before \
{due}.
[Currency/Paid in]: {currency}. Total: {total} {currency}. Due: {due}. Number: {number}. [Vendor/Supplier]: {company}, {city}.
[Hello/Good morning], this is {company} in {city}. [Have you seen/Did you get] our bill {number}? You [owe/still owe] us {total} \
{currency}, to be paid no later than {due}.
Before {due} [comes/passes], {total} {currency} should [reach/go to] {company}, {city}. The number of the invoice is {number}.
[For our books/To be filed]: bill {number}, supplier {company}, town {city}, {total} {currency}, due {due}.
How much do we owe {company} in {city}? It is {total} {currency}, [due on/until] {due}, as invoice {number} [says/shows].
{total} {currency} [was/is] the amount on invoice {number}. Pay {company} in {city}, and [do so/please do it] by {due}.
On {due} invoice {number} is due. The vendor is {company}, {city}, and [it comes to/the sum is] {total} {currency}.
I [got/received] a bill over {total} {currency}. It [is/comes] from {company} in {city}, [has the number/its number is] {number}, and I \
must settle it by {due}.
{company} | {city} | {number} | {total} {currency} | due {due}""") + lines_of("invoice"),
    lines("""
With {number} the firm {company} of {city} charges us {total} {currency}, payable no later than {due}.
Kindly settle {number} by {due}; {company}, located in {city}, is waiting for {total} {currency}.
An amount of {total} {currency} goes to {company} in {city} before {due}, see {number}.
{company}, a supplier in {city}, billed {total} {currency}; the number is {number} and {due} the last day to pay.
Until {due} we can settle what {company} of {city} wants: {total} {currency}, bill {number}."""),
    (EMAIL, PHONE, PAID),
    lines("""
[The invoice number is/The number of the invoice is/This is invoice/It is about invoice/The bill has the number] {number}.
[Invoice/Invoice number/Invoice no./Number/Bill number]: {number}[./]
[Please find attached invoice/We received invoice/See invoice/Please look at bill/Kindly settle invoice] {number}.
[The vendor is/The invoice is from/The supplier is/The bill came from/The firm that is waiting for the money is] {company} in {city}.
[Vendor/Supplier/From/Sent by/Seller]: {company}, {city}.
[We bought from/The money goes to/The goods came from/Please pay/We owe the money to/The firm is] {company} ({city}).
{company} [is a supplier in/from/of] {city} [sent the bill/wrote the invoice/wants to be paid].
[The total is/The amount is/It comes to/The sum is/The bill is over] {total}.
[Total/Amount/Sum/To pay]: {total}[./]
[We have to pay/We owe/They charge/They ask for/They billed] {total} [in all/in total/altogether].
[An amount of/A sum of] {total} [is to be paid/has to be sent/is still open].
[The currency is/All amounts are in/Payment is in/It is billed in/Please pay in] {currency}.
[Currency/Paid in/Currency of the invoice]: {currency}[./]
[What is the currency? It is/In what currency? In/They want the money in/The price is given in] {currency}.
[It is due on/It is payable by/Pay it by/Settle it by/The due date is/The last day of payment is/We can pay until] {due}.
[Due/Due date/Payable by/Pay by/Due on]: {due}.
[The money must arrive by/It has to be paid before/Payment is due on/We must pay no later than/It is payable until] {due}.
[The total is/The amount is/It comes to/We owe/The bill is over] {total} {currency}.
[Total/Amount/Sum/To pay]: {total} {currency}.
[Please pay/Please send/Please transfer/They want] {total} {currency} by {due}.
Invoice {number} is [due on/payable by/to be paid by] {due}.
[Invoice/Bill] {number} [came from/is from/was sent by] {company}, {city}.
[Invoice/Bill] {number} [is over/is for/comes to/has a total of] {total} {currency}.
{company} in {city} [wants/asks for/charges] {total} {currency}.
{total} {currency} [must be paid by/are due on/should be sent by] {due}.
[Bill/Invoice] {number} is [billed/to be paid] in {currency}."""),
    aliases={"company": "vendor", "city": "vendor"},
    clauses=INVOICE + clauses_more.INVOICE,
)  # fmt: skip


def draw_contact(draw: Draw) -> Drawn:
    street, city, zip_code = draw.street(), draw.place_name(), str(draw.number(10000, 99999))
    return {
        "name": draw.full_name(), "company": draw.company(), "phone": draw.phone(), "email": draw.email(),
        "address": {"street": street, "zip": zip_code, "city": city},
    }, {"street": street, "city": city, "zip": zip_code}  # fmt: skip


contact = Kind(
    "contact", words("contact|address|business card", "|"), draw_contact,
    lines("""
{name}, {company}, {street}, {zip} {city}, [phone/tel./telephone] {phone}, {email}
{name} [works for/works at/is employed by/is with] {company} at {street}, {zip} {city}. Phone: {phone}. Email: {email}
[Best regards/Kind regards/Best wishes/Yours], {name}. {company}, {street}, {zip} {city}. Tel. {phone}, [mail/email] {email}
Contact: {name} ({company}). [Address/Office]: {street}, {zip} {city}. Phone {phone}. Email {email}
You can [reach/contact] {name} of {company} at {phone} or {email} . The office is at {street}, {zip} {city}.
{company} - {name} - {street}, {zip} {city} - {phone} - {email}
Please write to {name} at {company}, {street}, {zip} {city}. The phone number is {phone} and the [email/mail address] is {email} .
[My name is/I am/This is] {name} and I work at {company}. Call {phone} or write to {email} . Our [address/office] is {street}, {zip} \
{city}.
[New address/Address] of {name}: {street}, {zip} {city}. [Company/Employer]: {company}. Phone: {phone}. Mail: {email}
Send the [parcel/letter/papers] to {company}, for {name}, {street}, {zip} {city}. Questions: {phone} or {email}
{company} has [moved/gone] to {street}, {zip} {city}. Ask for {name}, phone {phone}, email {email}
Name: {name}. Company: {company}. Street: {street}. City: {zip} {city}. Phone: {phone}. Email: {email}
For help [call/ring/dial] {name} on {phone} or mail {email} . {company}, {street}, {zip} {city}.
I [met/talked to/had lunch with] {name} from {company}. Phone {phone}, email {email} , office at {street}, {zip} {city}.
The [phone/telephone] of {name} is {phone}, [mails/letters by email] go to {email} , and {company} is at {street}, {zip} {city}.
Do you [need/want] the address of {company}? It is {street}, {zip} {city}. Ask for {name}, [dial/ring] {phone}, or mail {email} .
[Visit/Come and see] us at {company}, {street}, {zip} {city}. {name} [will help you/is waiting for you]. Tel.: {phone}. Email: {email}
Email: {email} - Phone: {phone} - Address: {street}, {zip} {city} - Company: {company} - Name: {name}
On the [card/sheet] I found {name}, employed by {company}. The number to dial is {phone}, the address is {street}, {zip} {city}, the \
email {email} .
At {street}, {zip} {city} you find {company}. {name} works there; the phone number is {phone} and the email address {email} .
[Note/Memo]: {phone} belongs to {name} ({company}). Email {email} . [Home of the company/Address]: {street}, {zip} {city}.
[Hi/Hello], here are the [details/data] of {name}: {company}, {phone}, {email} . The office [lies/is] at {street}, {zip} {city}.
{email} is the email of {name}, who is [with/employed by] {company}. Try {phone} if you [want to/would rather] talk. Letters go to \
{street}, {zip} {city}.
{name} | {company} | {street} | {zip} {city} | {phone} | {email}
Whoever rings {phone} gets {name} on the line. The firm is called {company}, its mail is {email} , and its [house/office] is {street}, \
{zip} {city}.""") + lines_of("contact"),
    lines("""
The card says {name}, {company}, and below {street}, {zip} {city}; dial {phone} or try {email}
Visit {name} at {street} in {zip} {city}, home of {company}, after ringing {phone} or mailing {email}
{email} and {phone} belong to {name}, employed by {company}, {street}, {zip} {city}.
Letters to {name}: {street}, {zip} {city}, the home of {company}. By phone try {phone}, by email {email} .
{company} has {name} on the phone: {phone}. You may also mail {email} or walk to {street}, {zip} {city}."""),
    (WEBSITE, DEPARTMENT),
    lines("""
[The name is/The card says/Ask for/The person to talk to is/Your contact is] {name}.
[Name/Contact/Person/Contact person]: {name}.
[I met/I talked to/This is the card of/Here are the details of] {name}.
[The company is/The company is called/The firm is/The employer is] {company}.
[Company/Employer/Firm/Works for]: {company}.
[We are/The office belongs to/The card is from/Letters go to the firm] {company}.
[The phone number is/The number to dial is/The telephone number is/By phone it is] {phone}.
[Phone/Tel./Telephone/Phone number/Call]: {phone}.
[You can call/Please call/Just ring/Dial/Try] {phone}[./ for questions./ in the morning.]
[The email address is/The email is/Mails go to/Please mail/Please write to] {email} .
[Email/Mail/E-mail/Email address]: {email} .
[For questions write to/By email it is/You may mail/Also try/Send an email to] {email} .
[The address is/The office is at/You find the office at/Letters go to/We have moved to] {street}, {zip} {city}.
[Address/Office/New address/Postal address/Location]: {street}, {zip} {city}.
[Please visit/Come to/Send the parcel to/Walk to] {street} in {zip} {city}.
[Meet us at/The address below is right:/Below you see the address:] {street}, {zip} {city}.
[Street: {street}. City: {zip} {city}./Street: {street}. Zip: {zip}. City: {city}./Street: {street}, zip code: {zip}, town: {city}.]
{name} [works for/works at/is employed by/is with/belongs to] {company}.
[Call/Ring/Phone] {name} [on/at] {phone}.
[The number/The phone number] {phone} belongs to {name}.
[Mail/Write to] {name} at {email} .
{company} [is at/has its office at/can be found at/sits at/has moved to] {street}, {zip} {city}.
[Call/Dial/Try/Ring] {phone} or [write to/mail] {email} .
[Ringing {phone} is the fastest way/After ringing {phone} you get an answer at once].
[Mailing/Writing to] {email} [works at any time/is fine, too/is easy].
{phone} and {email} belong to {name}.
{name} ({company})[./ is the one to ask./ will help you.]
[You can reach/Please contact] {company} at {phone}."""),
    first_person=lines("""
[My name is/I am/This is/Best regards,/Yours,] {name}.
[Hello/Hi], [my name is/this is/I am] {name}.
[Please ask for me,/You can call me/On my card you read the name] {name}.
[I work for/I am employed by/I am with/I work at/My company is/My employer is] {company}.
[The firm I work for is/Letters to me go to the firm/My office belongs to] {company}.
[My phone number is/Call me on/You reach me at/Please ring me on/My telephone is] {phone}.
[Phone me:/The number of my phone is/If you want to talk to me, dial/I answer the phone at] {phone}.
[My email is/My email address is/Write to me at/Mail me at/Send me an email:] {email} .
[I read all mails to/The address for emails to me is/By email you reach me at] {email} .
[My address is/My office is at/Visit me at/Letters reach me at/I work at] {street}, {zip} {city}.
[My new office is/You find me at/Come and see me at/I have moved to] {street}, {zip} {city}.
[My company/Company/My employer/Firm]: {company}.
[My phone/Phone/Tel./My number]: {phone}.
[My email/Email/Mail to me]: {email} .
[My address/Address/My office]: {street}, {zip} {city}.
[I am/My name is] {name} [and I work for/from/and I am with] {company}.
[Call me on/Reach me at/My contact data are] {phone} or {email} ."""),
    aliases={"street": "address", "zip": "address", "city": "address"},
    clauses=CONTACT + clauses_more.CONTACT,
)  # fmt: skip


def draw_visit(draw: Draw) -> Drawn:
    symptom = draw.pick(lex.SYMPTOMS)
    values: dict[str, Value] = {
        "patient": draw.full_name(), "age": draw.number(1, 95), "doctor": f"Dr. {draw.family_name()}", "date": draw.any_date(),
        "complaint": symptom.removeprefix("a ").removeprefix("an "), "medicine": draw.slot(lex.MEDICINES),
    }  # fmt: skip
    return values, {"symptom": symptom}


visit = Kind(
    "visit", words("visit|appointment note|medical note", "|"), draw_visit,
    lines("""
{patient} ({age}) [saw/visited/went to] {doctor} on {date} with {symptom} and [was given/got/received] {medicine}.
On {date}, {doctor} [treated/saw/looked after] {patient}, aged {age}, for {symptom}. [Medicine/Treatment]: {medicine}.
Patient: {patient}. Age: {age}. Doctor: {doctor}. Date: {date}. Complaint: {complaint}. Medicine: {medicine}.
{patient}, {age} years old, [came/went] to {doctor} on {date} because of {symptom}. The doctor [wrote down/chose] {medicine}.
{date}: {doctor} saw {patient} ({age}). Complaint: {complaint}. [Prescribed/Medicine/Treated with] {medicine}.
Because of {symptom}, {patient} [went/turned] to {doctor} on {date}. Age {age}. Medicine {medicine}.
{doctor} [gave/handed out/prescribed] {medicine} to {patient}, {age}, on {date}. The complaint was {complaint}.
My name is {patient}, I am {age}, and I have {symptom}. On {date} {doctor} [gave me/chose] {medicine}.
Visit on {date} with {doctor}. {patient} is {age} and has {symptom}. [Take/Should take] {medicine}.
{patient} had {symptom}. {doctor} [prescribed/noted down/chose] {medicine} on {date}. The patient is {age}.
Note by {doctor}, {date}: {patient}, {age}, has {symptom}. [Treatment with/Now on/To take:] {medicine}.
[Appointment/Visit] of {patient} on {date}. Age: {age}. [Reason/Complaint]: {complaint}. {doctor} recommends {medicine}.
{age} year old {patient} was seen by {doctor} on {date} for {symptom} and [takes/now takes] {medicine}.
{medicine} was prescribed by {doctor} on {date} to {patient}, {age} years, who [has/reports] {symptom}.
{patient} is {age} years of age and [suffers from/reports/complains of] {symptom}. On {date}, {doctor} decided on {medicine}.
[Hello/Good morning], this is {patient}. I am {age} years old. I [saw/visited] {doctor} on {date}, [since/because] I had {symptom}, and \
now I take {medicine}.
Take {medicine}, [said/noted] {doctor} to {patient} on {date}. It should help against {symptom}. Age of the patient: {age}.
Medicine: {medicine}. Complaint: {complaint}. Age: {age}. Date of the visit: {date}. Patient: {patient}. Seen by {doctor}.
A patient of {age} years, {patient}, was [troubled/bothered] by {symptom}. {doctor} handed out {medicine} on {date}.
Who [treated/saw] {patient} on {date}? It was {doctor}. The patient, aged {age}, suffered from {symptom} and got {medicine}.
[Last visit/Visit]: {date}. {doctor} found that {patient} has {symptom} and [wrote down/prescribed] {medicine}. The patient is {age} \
years old.
{symptom} - {patient} - {age} years - {doctor} - {date} - {medicine}
The [office/team] of {doctor} notes: on {date} {patient} ([aged/age] {age}) came in with {symptom} and left with {medicine}.
I am {doctor}. My patient {patient}, who is {age}, [reported/told me about] {symptom} on {date}, [so/and] I chose {medicine}.
After [a short talk/some questions] on {date}, {doctor} gave {patient} {medicine}. At {age}, the patient [often has/is troubled by] \
{symptom}.""") + lines_of("visit"),
    lines("""
Suffering from {symptom}, {patient} ({age}) turned to {doctor}, who chose {medicine} on {date}.
Seen on {date} by {doctor}: {patient}, {age} years of age, troubled by {symptom}, now on {medicine}.
{doctor} noted on {date} that {patient} ({age}) reports {symptom}; {medicine} was handed out.
With {medicine} from {doctor}, {patient} went home on {date}. Aged {age}, this patient suffers from {symptom}.
{symptom} brought {patient}, {age}, to the office of {doctor} on {date}; {medicine} should help."""),
    (PHONE, URGENT_OF_CASE),
    lines("""
[The patient is/The name of the patient is/The note is about/This is the visit of] {patient}.
[Patient/Name/Patient name/Name of the patient]: {patient}.
[We saw/We treated/In the office today:/Next in line:] {patient}.
[The patient is {age}/The patient is {age} years old/The patient is aged {age}/At {age} years of age, the patient is careful].
[Age/Age of the patient/Years of age]: {age}[./]
[The patient turned {age} this year/The card gives the age of the patient as {age}/The patient has reached the age of {age}].
[The doctor is/The doctor was/The patient was seen by/The visit was with/The note was written by] {doctor}.
[Doctor/Seen by/Treated by/Note by/Appointment with]: {doctor}.
[The office belongs to/The one who helped was/The patient turned to] {doctor}.
[The visit was on/The date of the visit is/The appointment was on/It was on/The patient came on] {date}.
[Date/Date of the visit/Visit on/Appointment/Seen on]: {date}.
[The doctor wrote this on/This is a note of/The appointment took place on] {date}.
[The complaint is/The complaint was/The reason of the visit is/It is about] {complaint}.
[Complaint/Reason/Reason of the visit/Trouble/Problem]: {complaint}.
[The patient has had/The patient suffers from/The patient is troubled by/The patient reports/The patient complains of] {symptom}.
[The medicine is/The doctor prescribed/The treatment is/The doctor chose/It is treated with] {medicine}.
[Medicine/Treatment/Prescribed/To take/Now on]: {medicine}.
[Please take/The patient now takes/The patient got/The patient should take/The patient went home with] {medicine}[./ every day./ in the \
evening.]
{patient} [is {age} years old/is {age}/is aged {age}/turned {age}].
{patient} [has/suffers from/reports/is troubled by/complains of] {symptom}.
{patient} [saw/went to/turned to/was seen by/was treated by] {doctor}.
{patient} [came/was here/had an appointment/was seen] on {date}.
{patient} [takes/was given/got/received/should take] {medicine}.
{doctor} [prescribed/chose/handed out/recommends/wrote down] {medicine}.
{doctor} [noted this/saw the patient/wrote this note] on {date}.
[Visit/Appointment] on {date} with {doctor}.
[Against/Because of/For] {symptom} the doctor [chose/gave/prescribed] {medicine}.
[Still suffering from/Troubled by/Because of] {symptom}, the patient [came in/asked for help].
It was {symptom} that brought [the patient here/the patient in]."""),
    first_person=lines("""
[My name is/I am/This is] {patient}[./ and I am the patient./ and I am not well.]
[Hello/Hi/Good morning], [my name is/this is/I am] {patient}.
[The card with my name says/On the card they wrote my name,/Regards,] {patient}.
[I am {age} years old/I turned {age} this year/I am {age} years of age].
[My age is/I am now/At the moment my age is] {age}.
[I went to/I saw/I turned to/They sent me to/I was seen by/I was treated by] {doctor}.
[My doctor is/My appointment was with/The doctor who helped me is] {doctor}.
[I was there on/I came on/I had an appointment on/I was seen on] {date}.
[My visit was on/The date of my visit was/My appointment was on] {date}.
[I have/I suffer from/I am bothered by/I came because of/I am troubled by] {symptom}.
[My complaint is/My problem is/I told them about my] {complaint}.
[I now take/I was given/I got/I have to take/They gave me/I went home with] {medicine}.
[My medicine is/The doctor prescribed me/My treatment is/I should take] {medicine}[./ every day.]
[My age/Age/My years]: {age}.
[My doctor/Doctor/Who saw me]: {doctor}.
[Date of my visit/Date/My appointment]: {date}.
[My complaint/Complaint/What troubles me]: {complaint}.
[My medicine/Medicine/What I take]: {medicine}.
[I went to/I saw/I visited] {doctor} on {date}.
[I have/I had] {symptom} and [take/got/was given] {medicine}.
[I saw/I went to] {doctor} because of {symptom}."""),
    aliases={"symptom": "complaint"},
    clauses=VISIT + clauses_more.VISIT,
)  # fmt: skip
