"""Tools of reference books, words and numbers, written as in `tools_catalogue`."""

REFERENCE = """
translate/translate_text(text/words/phrase:phrase, language/target/to:language): translate text
Translate "{text}" [to/into] {language}.
How do you say "{text}" in {language}?
What is "{text}" in {language}?
[Put/Turn] "{text}" into {language}.
[I need/Give me] the {language} [words/word] for "{text}".
[In {language}/Into {language}], please: "{text}"
[My friend speaks/They speak/They are speakers of] {language}. How do I say "{text}"?
held: I need "{text}" put into {language}.
held: What would {language} speakers say for "{text}"?

define_word/look_up(word/term:word): look up a word
What does {word} mean?
Define {word}[, please/].
Look up the word {word}[ for me/].
[Tell me/Find/Look up] the meaning of [the word /]{word}.
[I do not know/I have never heard] the word {word}. What [does it mean/is it]?
[Definition/Meaning] of {word}?
[Explain/Can you explain] the word {word}?
[Tell me plain and simple/Say] what [somebody means/is meant] when [they say/one says] {word}.
held: Explain the meaning of {word}.
held: In plain words, what is meant by {word}?

find_rhyme/rhymes(word/term:word): words that rhyme
[What/Which word] rhymes with {word}?
[Find/Give me/Show me] a rhyme for {word}.
[Rhymes/A rhyme] for {word}[, please/].
I [write/am writing] a poem and need a rhyme for {word}.
[Which word/What] sounds like {word} at the end? [It should be the same sound/What ends like it].
Rhyme: {word}
held: My poem has a line that ends in {word}, what sounds the same?
held: What could I rhyme {word} with?

convert_units/change_units(value/amount/number:decimal, source/from/unit:unit, target/to:unit): convert units
Convert {value} {source} to {target}.
How many {target} are {value} {source}?
{value} {source} in {target}[, please/].
[Change/Turn] {value} {source} into {target}.
[What is/What are/How long are] {value} {source} in {target}?
[It is/This thing is] {value} {source} long. How [many/much] is that in {target}?
[Write/Express/Give] {value} {source} in {target}.
held: Express {value} {source} as {target}.
held: In {target}, how long is a thing of {value} {source}?

random_number/roll(low/min/from:minutes, high/max/to:big): a random number
Give me a number [between {low} and {high}/from {low} to {high}].
[Pick/Choose/Draw] a random number from {low} to {high}.
Random number, {low} to {high}.
[I need/Tell me] any number between {low} and {high}.
[The number/A random number] should be [at least/not below] {low} and [at most/not above] {high}[, both being fine/].
Draw a number, [lowest/at least] {low}, [highest/at most] {high}.
held: Choose at random, the lowest being {low} and the highest {high}.
held: Any number will do, if it is not below {low} or above {high}.

percent_of/percentage(percent/rate:percent, value/total:big): part of a number
What is {percent} percent of {value}?
How much is {percent} percent of {value}?
[Work out/Calculate] {percent} percent of {value}.
[Take/Give me] {percent} percent of [the whole /all the ]{value}. [That part is what I need/How big is this part]?
[Of {value}/From {value}] I [want/need] {percent} percent.
The total is {value}, [how much is/what is] {percent} percent?
held: If the total is {value}, calculate a part of {percent} percent for me.
held: {value} is the whole, and {percent} percent of that would be what?

count_words/word_count(text/phrase/words:note): count words
How many words [are in/does it have]: {text}?
Count the words [in/of] "{text}".
[Number of words/Word count]: "{text}"
I wrote "{text}". How many words [is that/are these]?
"{text}" [has/is made of] how many words?
[Count/Please count] the words I [write/say]: {text}.
held: When I say "{text}", what number of words is that?
held: Give me the count for "{text}", in words.

search_people/find_person(job/profession:job, city/place/town:city): find somebody who does a job
Find a {job} in {city}.
I need a {job}[, I live in/, the town is/ in] {city}.
[Is there/Do you know] a good {job} in {city}?
Who is [only a/a] {job} in [or around /]{city}?
[Search/Look] in {city} for a {job}.
[We live/I live] in {city} and [want/need/look for] a {job}.
{job} in {city}[, please/]?
held: Does any {job} live in or around {city}?
held: {city} is where we live, and only a good {job} can help us now.
"""
