"""Short chronicles of made-up people, with questions whose answers stand in them."""

import numpy as np

STARTS = "Ar Bel Cor Dun El Fen Gar Har Il Jor Kel Lor Mar Nor Or Pel Quin Ros Sel Tor Ul Ver Wil"
ENDS = "ada ano bert dell ena eth field gard ika ing ista iver lan mor nell ock onne orn sby wick"
DEEDS = (  # verb, verb behind "did", things
    ("built", "build", ("a stone bridge", "a windmill", "a tall tower", "a small chapel")),
    ("painted", "paint", ("a portrait of the queen", "a picture of the harbour", "a green door")),
    ("found", "find", ("an iron ring", "a chest of silver", "a forgotten map", "a blue stone")),
    ("wrote", "write", ("a book about birds", "a long poem", "a song for the miners")),
    ("sold", "sell", ("a herd of goats", "a fishing boat", "an old clock", "a field of barley")),
)
WORK = ("engineer", "painter", "sailor", "teacher", "baker", "doctor", "miller", "carpenter")
FORMS = (
    "In {year} the {work} {name} {did} {thing} near {place}.",
    "{name}, the {work}, {did} {thing} near {place} in {year}.",
    "Near {place}, {name} the {work} {did} {thing} in {year}.",
    "It was in {year} that {name}, a {work}, {did} {thing} near {place}.",
)
QUESTIONS = (  # what is asked for, and how, by what tells this deed from the others
    ("name", "Who {did} {thing} near {place}?"),
    ("name", "Who was the {work} that did something near {place}?"),
    ("year", "In which year did {name} {do} {thing}?"),
    ("year", "When did the {work} {do} something near {place}?"),
    ("place", "Near which place did {name} {do} something?"),
    ("place", "Where did the {work} of {year} {do} something?"),
    ("thing", "What did {name} {do} in {year}?"),
    ("thing", "What was it that {name} {did} near {place}?"),
    ("work", "What was the work of {name}?"),
)


def span_stories(number, sentences=5, questions=4, seed=0):
    """Chronicles and questions, in the format of SQuAD, for `data.read_squad`.

    Each sentence tells a deed: who, of which work, did what, where and when. Names and places are
    made of two syllables. What a question goes by is true of one deed alone; several deeds may have
    the same verb, work or thing.

    Args:
        number: int, of chronicles.
        sentences: int, deeds in each.
        questions: int, about each.
        seed: int.

    Returns:
        dict, {"version": ..., "data": [{"title": ..., "paragraphs": [...]}]}.

    Raises:
        ValueError: for negative numbers, or chronicles without a deed.

    Example:
    >>> from kerasattn.data import read_squad, span_stories
    >>> asked = read_squad(span_stories(2, sentences=3, questions=4))
    >>> len(asked), all(text in one.context for one in asked for text, _ in one.answers)
    (8, True)
    """
    if min(number, questions) < 0 or sentences < 1:
        raise ValueError(
            "number and questions must be at least 0, sentences at least 1, got "
            f"{number}, {questions} and {sentences}."
        )
    random = np.random.default_rng(seed)
    paragraphs = []
    for number_here in range(number):
        deeds = [_deed(random) for _ in range(sentences)]
        told, starts, context = [], [], ""
        for deed in deeds:
            sentence = FORMS[random.integers(len(FORMS))].format(**deed)
            starts.append(len(context))
            told.append(sentence)
            context += sentence + " "
        asked = []
        while len(asked) < questions:
            which = int(random.integers(sentences))
            sought, form = QUESTIONS[random.integers(len(QUESTIONS))]
            answer = deeds[which][sought]
            if not _is_clear(form, deeds, which) or told[which].count(answer) > 1:
                continue
            place = starts[which] + told[which].index(answer)
            asked.append(
                {
                    "id": f"{number_here}-{len(asked)}",
                    "question": form.format(**deeds[which]),
                    "answers": [{"text": answer, "answer_start": place}],
                }
            )
        paragraphs.append({"context": context.strip(), "qas": asked})
    return {"version": "made", "data": [{"title": "Chronicles", "paragraphs": paragraphs}]}


def _deed(random):
    """One deed: what the forms and questions ask for by name."""
    pick = lambda choices: choices[random.integers(len(choices))]
    name = lambda: pick(STARTS.split()) + pick(ENDS.split())
    did, do, things = pick(DEEDS)
    return {
        "name": f"{name()} {name()}",
        "place": name(),
        "year": str(random.integers(1500, 1950)),
        "work": pick(WORK),
        "did": did,
        "do": do,
        "thing": pick(things),
    }


def _is_clear(form, deeds, which):
    """Whether all that a question says is true of one deed alone."""
    names = [name for name in deeds[0] if "{" + name + "}" in form]
    said = [tuple(deed[name] for name in names) for deed in deeds]
    return said.count(said[which]) == 1
