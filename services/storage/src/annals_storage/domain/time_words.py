"""Words for times, in English, German, French, Spanish and Portuguese, without accents.

What is ambiguous stands here only with words around it: "may" and "march" are verbs, "hier" is
"here" in German.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MONTHS = (
    "january jan januar janner janvier enero janeiro",
    "february feb februar fevrier febrero fevereiro",
    "march mar marz mars marzo marco",
    "april apr avril abril",
    "may mai mayo maio",
    "june jun juni juin junio junho",
    "july jul juli juillet julio julho",
    "august aug aout agosto",
    "september sept sep septembre septiembre setembro",
    "october oct oktober okt octobre octubre outubro",
    "november nov novembre noviembre novembro",
    "december dec dezember dez decembre diciembre dezembro",
)
_WEEKDAYS = (
    "monday montag lundi lunes segunda-feira",
    "tuesday dienstag mardi martes terca-feira",
    "wednesday mittwoch mercredi miercoles quarta-feira",
    "thursday donnerstag jeudi jueves quinta-feira",
    "friday freitag vendredi viernes sexta-feira",
    "saturday samstag sonnabend samedi sabado",
    "sunday sonntag dimanche domingo",
)
_NUMBERS = (
    "a an one ein eine einem einer un une uno una um uma",
    "two zwei deux dos dois duas",
    "three drei trois tres",
    "four vier quatre cuatro quatro",
    "five funf cinq cinco",
    "six sechs seis",
    "seven sieben sept siete sete",
    "eight acht huit ocho oito",
    "nine neun neuf nueve nove",
    "ten zehn dix diez dez",
    "eleven elf onze once",
    "twelve zwolf douze doce doze",
)
_UNITS = {
    "day": "day days tag tage tagen jour jours dia dias",
    "week": "week weeks woche wochen semaine semaines semana semanas",
    "month": "month months monat monate monaten mois mes meses",
    "year": "year years jahr jahre jahren annee annees ano anos",
    "weekend": "weekend weekends wochenende week-end fim-de-semana",
}


def _numbered(rows: tuple[str, ...]) -> dict[str, int]:
    return {word: number for number, row in enumerate(rows, start=1) for word in row.split()}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


MONTHS, WEEKDAYS, NUMBERS = map(_numbered, (_MONTHS, _WEEKDAYS, _NUMBERS))
UNITS = {word: unit for unit, row in _UNITS.items() for word in row.split()}
_MONTH, _WEEKDAY = f"(?P<month>{_any(MONTHS)})", f"(?P<weekday>{_any(WEEKDAYS)})"
_UNIT = f"(?P<unit>{_any(UNITS)})"
_COUNT = rf"(?P<count>\d{{1,3}}|{_any(NUMBERS)})"
_DAY, _YEAR = r"(?P<day>\d{1,2})", r"(?P<year>(?:19|20)\d\d)"
_LAST = (
    "last|past|previous|letzte[nrms]?|vorige[nrms]?|vergangene[nrms]?"
    "|derniere?|passee?|pasad[oa]|passad[oa]|ultim[oa]"
)
_THIS = "this|diese[nrms]?|cette|cet|ce|est[ea]|nest[ea]"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{text})(?!\w)")


DATES = (
    _pattern(rf"{_YEAR}[-/](?P<month>\d{{1,2}})[-/]{_DAY}"),
    _pattern(rf"{_DAY}\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR}"),
    _pattern(
        rf"{_DAY}(?:st|nd|rd|th|er|\.)?\s(?:of\s|de\s)?{_MONTH}\.?,?(?:\s(?:de\s|del\s)?{_YEAR})?"
    ),
    _pattern(rf"{_MONTH}\.?\s{_DAY}(?:st|nd|rd|th)?(?:,?\s{_YEAR})?"),
    _pattern(rf"{_MONTH}\.?,?\s(?:of\s|de\s|del\s)?{_YEAR}"),
    _pattern(
        r"(?:in|during|early in|late in|this|im|anfang|ende|mitte|en|debut|fin|em|no mes de"
        rf"|last|letzten)\s{_MONTH}"
    ),
    _pattern(rf"(?:in|during|im jahr|en|em|of|year|from)\s{_YEAR}"),
)
"""Named days, months and years, the most exact first."""

AGO = (
    _pattern(rf"{_COUNT}\s{_UNIT}\s(?:ago|atras)"),
    _pattern(rf"(?:vor|il y a|hace|ha)\s{_COUNT}\s{_UNIT}"),
)
SPANS = (
    _pattern(rf"(?:{_LAST})\s{_COUNT}\s{_UNIT}"),
    _pattern(rf"(?:les|los|las|os|as)\s{_COUNT}\s(?:derniers|dernieres|ultimos|ultimas)\s{_UNIT}"),
)
"""The last so many days, up to now."""

LAST_UNIT = (_pattern(rf"(?:{_LAST})\s{_UNIT}"), _pattern(rf"{_UNIT}\s(?:{_LAST})"))
THIS_UNIT = (_pattern(rf"(?:{_THIS})\s{_UNIT}"),)
WEEKDAY = (
    _pattern(rf"(?:{_LAST}|on|am|this)\s{_WEEKDAY}"),
    _pattern(rf"(?:le|el|na|no)\s{_WEEKDAY}"),
    _pattern(rf"{_WEEKDAY}\s(?:{_LAST})"),
)
DAYS_AGO = {
    2: _pattern("day before yesterday|vorgestern|avant-hier|anteayer|anteontem"),
    1: _pattern(
        "yesterday|last night|gestern|hier (?:soir|matin)|ayer|ontem|anoche"
        r"|(?:qu'|est-ce|j'ai|ai-je|avons|avez|nous|vous|dit)[^.]*\shier"
    ),
    0: _pattern(
        "today|tonight|this (?:morning|afternoon|evening)|heute|aujourd'hui|ce (?:matin|soir)"
        "|hoy|hoje"
    ),
}
"""Calendar days before today; the first that stands in a query counts."""

_OF_DAYS = (
    "yesterday night tonight today morning afternoon evening vorgestern gestern heute hier avant"
    " aujourd matin soir anteayer ayer anoche hoy anteontem ontem hoje"
)
_OF_NAMES = {
    part for word in (*MONTHS, *WEEKDAYS, *UNITS) for part in word.split("-") if part != "feira"
}
WORD = re.compile(r"[a-z]+|\d{4}")
TELLING = frozenset({*_OF_NAMES, *_OF_DAYS.split(), *map(str, range(1900, 2100))})
"""What a query without any of it need not be looked through for."""
