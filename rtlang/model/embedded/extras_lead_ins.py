"""More ways to lead in the value of an optional field, which stands first, in the middle or last: sentences, a line each."""

PHONE = """
{} [is the phone number/is the number to dial/gets you through/will be answered/is our line/reaches us][./ on all days.]
{} [by phone/on the phone/is what to dial/is where we pick up][./ at any hour.]
[Dial/Try/Use/Note down/Save/Write down] {}[. We pick up./ to talk to us./ to hear more./ by phone.]
[By phone/Over the phone/On the line/For a quick answer]: {}[./ until six.]
[By phone/On the phone] [we are at/you get us under/it is/we answer on] {}.
[Somebody/A friendly voice/My colleague/The night desk] [answers/picks up] [at/on/under] {}.
[The line/The telephone/My mobile/The phone] [has the number/is/rings under/answers to] {}.
[If there is trouble/If anything changes/In case of questions/Should you be late], [call/dial/phone/try] {}.
[Talk to us/Speak to somebody/Get an answer/Ask questions] [at/on/under] {} [by phone/, day or night/on weekdays].
[Phone/Tel/Mobile/Cell/Hotline/Call]: {}
[A call/One call/A short call/A message] to {} [is enough/will do/helps/settles it].
[We/They/I] [answer the phone/take calls/can be called/wait for calls] [at/on/under] {}[./ all day.]
[Call back/Phone back/Give me a call/Give us a call/Send a text/Leave a message] [on/at/under] {}[./, please.]
[The number/The phone number] {} [is for questions/is ours/leads to our desk/stays the same].
[You get through/You can talk to us/We talk] [at/on/by dialing/by calling] {}.
[My number/Our number/The telephone number/The mobile number] ({}) [has not changed/is on the card/works day and night].
[Phone calls/Calls/Text messages], please, [to/on] {}.
[Whoever/Anyone who/If you] [likes to talk/has questions/prefers the phone] [can dial/should call/may try] {}.
"""
EMAIL = """
{} [is the email/is the mailbox/is our address for mails/is read daily/gets your mail/is where to write].
{} [by email/is for letters/takes questions/for those who write][./ at any hour.]
[Try/Use/Note down/Save] {} [to reach us/if you prefer writing/for letters/by mail].
[By email/By mail/In writing/On the net]: {}
[By email/By mail] [we are at/you get us under/it is/send it to] {} .
[Send/Forward/Mail] [the papers/a copy/your answer/your wishes/a line/a message] to {} [today/, please/when you can].
[The mailbox/The inbox/My mail/Our email] [is/is called/has the address/sits at] {} .
[If there is trouble/If anything changes/In case of questions/Should you be late], [write to/mail/email/try] {} .
[Our inbox/The mailbox/The mail address/The email] {} [is open/is checked daily/is watched by us/has not changed].
[Email/Mail/Inbox/Mailbox/Send mail to/Write to]: {}
[A mail/An email/One line/A short letter] to {} [is enough/will do/helps/settles it].
[We/They/I] [read/answer/check] [all mail at/letters sent to/everything that comes to] {} [daily/in the evening/, of course].
[Write back/Get in touch/Answer/Say hello] [via/through/at/under] {} [, please/soon/any time].
[You get through/You can write/We can be written to] [at/under/via] {} .
[My email/Our email/The email address/The address for mail] ({}) [has not changed/is on the card/works].
[Bills/Copies/Letters/Photos/Requests] [are welcome at/can be sent to/come to/reach us at] {} .
[Whoever/Anyone who/If you] [likes to write/has questions/prefers mail] [can use/should try/may write to] {} .
[The desk/The office/My colleague] [uses/has/reads/checks] {} .
"""
WEBSITE = """
{} [is the website/is the address on the web/tells you more/has pictures/shows it all/is worth a click].
{} [for pictures/for more/for the rest/for details/online].
[Open/Type in/Click on/Try/Browse/Load] {} [to see more/to learn more/for pictures/in your browser].
[Online/On the net/On the internet/In the browser]: {}
[The rest/The plan/A map/Each detail/The full story] [is/stands/can be read/waits] [at/on/under] {} .
[Pictures/A video/A map/All facts/A list] [can be seen/are shown/is shown/can be found] [at/on/under] {} .
[The site/The page/Our site/The internet address] {} [tells more/has it all/shows pictures/is up to date].
[The site/Our page/The internet page/The address on the net] [is called/has the address/sits at/can be opened under] {} .
[If you want more/For those who want more/Whoever is curious], [open/see/try/look at] {} .
[Page/Site/URL/Internet/On the net/Web address]: {}
[A look at/A click on/A visit to] {} [is enough/will do/helps/pays].
[We/They] [write about it/show it/post news/sell it/explain it] [on/at] {} .
[Sign up/Book/Order/Ask/Register] [online at/on the page/on the site/through] {} .
[Our page/The website/The homepage] ({}) [has more/is new/was updated/knows the rest].
[Browse to/Surf to/Point your browser at/Have a look at/Go and see] {} [, please/today/for more].
[It is described/It is shown/You can read it/There is more] [at/on/under] {} [with pictures/in full/too].
"""
REFERENCE = """
{} [is the reference/is the reference code/is our file number/is what we filed it as/is written on the papers].
{} [is what to quote/is what to mention/should be named/has to be given] [when you write/if you ask/in every letter].
[We keep it/It is kept/It was filed/We put it down/It stands in our books/It is recorded] [as/under] {}.
[On the label/On the papers/On the file/On the form/On top/In our books] [you read/we wrote/it says/stands/they put] {}.
[File number/File no./Case reference/Confirmation/Confirmation code/Reference code/Our sign/Code no.]: {}
[The file/The form/The paper/The label/The confirmation] [is marked/says/has the number/bears/carries the code] {}.
[Mention/Quote/Name/State/Give/Use] {} [when you call/if you write/whenever you ask/in your answer][./, please.]
[With/Under/By] the [reference/code/file number/confirmation code] {} [we find it/it was stored/you get an answer/all is easy].
[Your/Our/The/My] [reference/file number/confirmation/reference code] ({}) [is needed/is on the papers/should be kept].
[Keep/Note down/Remember/Save/Write down] the [reference/code/reference code/file number] {}[./ for later.]
[Filed as/Stored as/Registered as/Noted as/Known here as/Recorded under/Labelled] {}.
[It goes by/It runs under/The papers name it/The desk calls it/We labelled it/It was given the label] {}.
[Find it/Look it up/Ask for it/Search for it] [as/under] {}[./ in the books.]
[The desk/Our office/The clerk/The system] [gave it/assigned/noted/stored/wrote down] the [reference/code/number] {}.
[In letters/In every letter/On the phone/When writing], [please quote/name/use/mention] {}.
[Which reference/What reference/The reference]? {}[./, of course./, it says here.]
[All papers/Letters/Answers/Questions] [about it/on this] [should/must/have to] [name/quote/bear/carry] {}.
[As reference/As a reference/As our reference/For reference] [we use/take/we noted/please quote/there is] {}.
"""
DEPARTMENT = """
{} [is the department/is in charge/is the team that helps/takes care of it/is on the door].
{} [will answer/has the file/looks after this/is where to go].
[Go to/Walk over to/Ask/Send it to/Turn to] the people [in/from/of] {}.
[The team/The people/The desk/The office] [of/in/from] {} [can help/has the file/takes it from here].
[Belongs to/Sits with/Has a desk in/Is part of/Reports to] {}.
[Division/Section/Office/Team name/Which department]: {}.
[A case for/This is for/A matter for/Something for] {}.
[Our/The/Your] {} [people/desk/office/colleagues] [know more/will call/are in charge].
[On the door/On the plan/On the list/On the badge] [it says/stands/you read] {}.
[Which department/What team]? {}[./, of course./, as it says on the door.]
[The department/The section/The team] in question [is/is called/has the name] {}.
[Handled/Looked after/Taken care of/Dealt with] by {}.
[Call/Write to/Visit/Contact] {} [on the second floor/if you need more/for this].
[Sent over/Passed on/Handed over/Given] to {}.
[It falls to/It is up to/It is the job of/The work is done by] {}.
"""
COLOR = """
{} [is the color/is the color of it/is how it looks/is what you see/was our choice/is all we have].
{} [on all sides/from top to bottom/inside and outside/all over].
[Color of it/Shade/Tone/Look/Which color/Paint]: {}.
[It looks/It shines/It is all/It is/It was made] {}[./ on all sides./ all over.]
[Made/Dyed/Sold/Kept/Shown] in {}.
[We chose/They chose/You get/I like] [it in/the one in] {}.
[Its coat/Its surface/The paint/The cover/The front/The finish] is {}.
[Somebody dyed it/The sun turned it/The factory makes it/They sprayed it] {}.
[A tone of/A deep/A soft/A warm/A shiny] {}.
[In {}, it looks good/In {} only/In {}, as on the picture].
[Which color/What color]? {}[./, of course./ as on the picture.]
[The color/The tone/The shade] {} [suits it/was chosen/is what people like].
[Think of/Imagine/Picture] it in {}.
[The picture shows it/You see it/It comes to you/We deliver it] in {}.
[Apart from a few spots/On the whole/Seen from afar], it is {}.
"""
PUBLISHER = """
{} [published it/put it on the market/sells it/made the print/has the rights/is the house behind it].
{} [is the house/is the firm that printed it/is named as the publisher/stands on the cover as the publisher].
[Publisher's name/House/From the house of/Edition/Imprint/Released by/Sold by]: {}.
[The rights/All rights] [belong to/are with/lie with] {}.
[Put out/Released/Printed and sold/Put on the market/Edited] by {}.
[You can order it/It was released/It came out/It can be had] [from/at/with] {}.
[Its publisher/The house behind it/The firm that sells it/The house that prints it] [is/is called/goes by the name] {}.
[We thank/Thanks go to/The reviewer got a copy from/A copy was sent by] {}, [the publisher/its publishing house/who published it].
[Which publisher/Who published it]? {}[./, as always./, it says.]
[Under the roof of/In the program of/On the list of/Among the titles of] {}[./ since spring.]
[The publisher/The publishing house] {} [sells it/has many such titles/did good work/is pleased].
[An edition/A print/A release/A title] [by/of/from] {}.
[The cover/The first page/The back] [names/shows/mentions] {} as [the publisher/publisher/the house].
[To publish it/Publishing it/Printing it] was the [work/job/idea] of {}.
[It took/It needed] {} to [publish it/print it/bring it to the shops].
"""
GUESTS = """
{} [chairs/seats/plates/glasses] are [ready/set out], [one for each guest/as many as guests].
{} [is the number of guests/is how many will come/is what we plan for/is the head count].
{} [friends/guests/people/heads] [are on the list/are invited/want to come/said yes/have a seat].
[Head count/How many/Number of people/Guest count/Expected/Size of the party]: {}[./ guests./ people.]
[The room/The hall/The place] [holds/is set for/has seats for/is ready for] {} [guests/people].
[We/They/The hosts] [count on/plan for/set chairs for/cook for/are waiting for] {} [guests/people].
[With/Among] {} [guests/people/visitors], [it will be full/there is a lot to do/we need many chairs].
[There are/There will be/We will be] {} [of us/guests/people/of you][./ in all.]
[Food/Drinks/Cake/Chairs] for {} [guests/people] [is ordered/are ordered/will be there].
[In all/All in all/In total/Altogether], {} [guests/people/friends] [are coming/come/will be there].
[Invitations/Letters/Cards/Tickets] [went/were sent] to {} [guests/people].
[A party of/A group of/A crowd of/A round of] {}[./ people./ guests.]
[How many guests/How many]? {}[./, more or less./, they say.]
[As many as/No less than/Up to/Exactly] {} [guests/people/friends] [come/are coming/are hoped for/find a seat].
[The list/The plan/The book] [names/counts/speaks of] {} [guests/people].
"""
EMPLOYER = """
{} [pays the salary/is the firm/hired this person/is where the desk stands/is the company/has a good worker there].
{} [is glad to have such a worker/signs the paycheck/gave the job/wrote the contract].
[Workplace/Job at/Place of work/Paid by/Hired by/Business/Company name]: {}.
[Goes to work/Earns money/Spends the weekdays/Serves/Is busy/Has a contract] [at/with] {}.
[Gets paid/Is paid/Was hired/Is employed/Was taken on] by {}[./ since last year.]
[The boss sits/The desk stands/The office is] [at/with] {}.
[The paycheck/The salary/The contract/The badge] [comes from/says/is signed by/names] {}.
[Signed on with/Has joined/Joined/Left school for/Stays with] {}[./ last year.]
[Which company/For whom]? [For {}, of course./{}, as the badge says./{}.]
[The firm/The company/The employer] [in question/behind it all/that pays] is {}.
[On weekdays/By day/From nine to five/Every morning] [at/busy at/with/seen at] {}.
[The firm/The company] {} [pays the salary/hired this good worker/has such people/is happy about it].
[Works/Working] in the offices of {}.
[A worker/A colleague/An employee/Part of the staff] [at/of] {}.
[The job/The daily work/The career] is [at/with] {}.
"""
AUTHOR = """
{} [sent it in/shares it with us/invented it/thought of it/wrote the lines/noted all this].
{} [is the cook who wrote it/put it on paper/is the one who wrote it/signed the recipe].
[Written and cooked/Sent in/Invented/Told/Noted/Shared/Thought of] by {}.
[Writer/From the kitchen of/Noted by/Sent by/Who wrote it/Source]: {}.
[We owe/I owe/The world owes] [this/it/the recipe] to {}.
[It was/It is] {} who [wrote it/sent it in/thought of it/noted it].
[The writer/The one who wrote it/The cook who wrote this] [is/is called/has the name] {}.
[From a book/From a letter/From the notes/After an idea/From the pen] [of/by] {}.
[A letter/A note/A page/A card] [from/by] {} [tells it/has it all/says so].
[Our reader/A friend/My neighbor/The cook] {} [wrote it/sent it/noted it/wrote these lines].
[Who wrote it/Who is the author]? {}[./, as always./, of course.]
[The name under it is/The name on the card is/Signed,/Under it stands] {}.
[Questions about the text/Praise/Letters] [should reach/are for/are welcomed by] {}, who wrote it.
[Many thanks/A big thank you/Our thanks], {}, who [wrote it/sent it in/is the author].
[The author/The writer] {} [is a friend/lives nearby/knows it by heart/cooks it weekly].
"""
DIFFICULTY = """
{} [is the difficulty/is how people rate it/is what the book says about the difficulty/is the rating].
[How hard is it/How difficult is it/The difficulty]? {}[./, they say./ for most cooks.]
[For beginners/For most cooks/On our scale/In the book/By all accounts], it is {}[./ to make.]
[Difficulty rating/Cooking level/Grade/Skill needed/Rated/How hard]: {}.
[The book/My mother/The author/Our list/The magazine] [calls it/rates it/finds it/marks it as] {}.
[It is/This is] [a/one] recipe [rated/marked/listed as/known as] {}.
[Marked/Listed/Classed/Sorted/Put down] as {}.
[The rating/The grade/The mark/The label] [is/says/reads] {}.
[Among/Under/With] the recipes [rated/marked/listed as] {}.
[To cook it is/To make it is/Making it is/It is] {}[./, the book says./, as far as cooking goes.]
[The level/The level of skill/The degree of difficulty] [stands at/is set at/was put at/was called] {}.
[Difficulty/The difficulty] ({}) [stands on the card/is on the card/was judged by cooks].
[Cooks/Friends/Most people/Readers] [rated/judged/found/called] it {}.
"""
