"""Words that tell a language: they say little else, and hardly a sentence goes without one.

English holds words of other languages too where it spells a word of its own alike ("die", "hat",
"son", "com"): what could be either tells nothing. A word of the second list is met in names as
well ("Los Angeles", "La Paz") and tells half as much.
"""

from __future__ import annotations

from collections.abc import Mapping

STRONG: Mapping[str, str] = {
    "en": """
        the a an and or but of to in on at by for with from as is are was were be been being am do
        does did done have has had having i you he she it we they me him her us them my your his
        its our their this that these those what which who whom whose when where why how not no
        nor so if then than too very just can could will would shall should may might must about
        into over after before again there here all any some more most other such only own same
        out up down off because while during through between both each few until against once also
        yes don didn doesn isn wasn aren couldn wouldn won ll ve re im hey hi hello oh wow thanks
        thank great really good like know think get got go going one two new now let make see want
        need die war hat bin den man art plus sans pour par son sous tout elle sin con men com os
        era non ton pas mal si sure mis tu es et en y e ma ha se te mes ni car ses sommes uno dos
        des sons wo ob bis um yo
    """,
    "de": """
        der die das und ist nicht ich du er sie wir ihr ein eine einen einem einer eines dem mit
        auf für zu zum zur im in an am aus bei nach über unter vor auch aber oder wenn dann als
        wie was wer wo warum wann hat habe haben hatte hast sind war waren wird werden wurde kann
        können konnte muss müssen soll sollte will wollen möchte mein meine meinen meiner dein
        deine sein seine ihre unser unsere kein keine keinen mich dich sich uns euch mir dir ihm
        ihn ihnen noch nur schon sehr so doch mal ja nein hier dort jetzt heute gestern morgen
        immer wieder mehr viel etwas nichts alles man dass weil ob bis um durch gegen ohne diese
        dieser dieses diesen welche welcher gibt bitte danke hallo es da den
    """,
    "fr": """
        une est pas ne je tu il elle nous vous ils elles ce ça cet cette ces qui que qu quoi dont
        où mais ou donc car ni si dans sur sous avec sans pour par en au aux à mon ma mes ton ta
        tes son sa ses notre nos votre vos leur leurs me te lui eux moi toi suis es sommes êtes
        sont était étais étaient être été ai as a avons avez ont avait avoir fait faire plus moins
        très trop aussi comme quand comment pourquoi combien tout tous toute toutes même encore
        déjà jamais toujours rien ici là oui non merci bonjour aujourd hui hier demain chez entre
        après avant depuis alors peut peux faut quel quelle quels quelles on et se
    """,
    "es": """
        una unos unas del y que en a con por para sin sobre entre hasta desde no sí si se lo les
        me te nos os mi mis tu tus su sus nuestro nuestra es son soy eres somos era eran fue
        fueron ser estar está están estoy estaba estás he ha has han hemos había haber hay tengo
        tiene tienen tenía yo tú él ella nosotros ellos ellas usted ustedes este esta esto estos
        estas ese esa eso esos esas aquel qué quién cuál cuándo cuando dónde donde cómo como
        cuánto porque pero muy más menos también ya aún todavía siempre nunca hoy ayer mañana aquí
        allí todo todos toda todas nada algo otro otra bien gracias hola uno
    """,
    "pt": """
        os as um uma uns umas do em no na nos nas ao aos à às ou que não sim se por para com sem
        sobre entre até desde eu tu ele ela nós eles elas você vocês me te lhe meu minha meus
        minhas teu tua seu sua seus suas nosso nossa é são sou somos era eram foi foram ser estar
        está estão estou estava tem têm tenho tinha ter há haver isso isto este esta esse essa
        aquele aquela qual quem quando onde como quanto porque mas muito muita mais menos também
        já ainda sempre nunca hoje ontem amanhã aqui ali tudo todos toda nada algo outro outra bem
        obrigado obrigada olá pelo pela num numa a dos das
    """,
}
WEAK: Mapping[str, str] = {
    "de": "von des",
    "fr": "le la les un des du de",
    "es": "el la los las un de al le o e",
    "pt": "o e da de",
}
LETTERS: Mapping[str, tuple[str, str]] = {
    "de": ("ßäöü", ""),
    "fr": ("èùîûëïœ", "àâêôçé"),
    "es": ("ñ¿¡", "áéíóú"),
    "pt": ("ãõ", "àâêôçáéíóú"),
}
"""Letters and marks that tell as much as a strong word, and as a weak one."""
