"""The language of a text, by script or by model."""

from __future__ import annotations

import pytest

from knowledge.lexical.language import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("差旅费报销期限是多少", "zh"),
        ("在 Kubernetes 集群中配置 PPR-9087", "zh"),
        ("有給休暇の申請はいつまでですか", "ja"),
        ("휴가는 언제 신청합니까", "ko"),
        ("ขอลาป่วยได้กี่วัน", "th"),
        ("כמה ימי חופשה יש", "he"),
        ("Πόσες ημέρες άδειας", "el"),
        ("छुट्टी के लिए आवेदन कैसे करें और कितने दिन पहले", "hi"),
        ("كم عدد أيام الإجازة السنوية للموظفين الجدد", "ar"),
        ("چگونه می‌توانم درخواست مرخصی بدهم و چند روز", "fa"),
        ("Сколько дней отпуска положено новому сотруднику", "ru"),
        ("Скільки днів відпустки має новий працівник підприємства", "uk"),
        ("How many days of leave does a new employee have?", "en"),
        ("Wie viele Urlaubstage hat ein neuer Mitarbeiter?", "de"),
        ("Combien de jours de congé pour un nouveau salarié ?", "fr"),
        ("¿Cuántos días de vacaciones tiene un empleado nuevo?", "es"),
        ("Quantos dias de férias tem um novo funcionário?", "pt"),
        ("Hoeveel vakantiedagen heeft een nieuwe medewerker?", "nl"),
    ],
)
def test_language_is_recognised(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize("text", ["", "   ", "12345", "PPR-9087", "hello", "\U0001f600", "\ud800"])
def test_text_that_does_not_tell_has_no_language(text: str) -> None:
    assert detect_language(text) == ""


def test_long_text_is_judged_by_its_beginning() -> None:
    assert detect_language("The badge is worn where it can be seen. " * 100_000) == "en"


VACATION = (
    "Der Urlaub ist spätestens vier Wochen vor dem ersten Urlaubstag schriftlich zu beantragen. "
    "Nicht genommene Urlaubstage verfallen am einunddreißigsten März des folgenden Jahres, es sei "
    "denn, dringende betriebliche Gründe haben den Urlaub verhindert."
)


@pytest.mark.parametrize(
    ("text", "around", "language"),
    [
        # A list of references in an English document looks like several languages.
        (
            "Müller A, Rossi G. Eur J Med 2004; 12: 33-41. Garcia P, Dubois L. Rev Med 1999.",
            "en",
            "en",
        ),
        ("def hent(verdier):\n    return sorted(set(verdier))", "en", "en"),
        ("参考文献和附录", "en", "zh"),  # another script needs no proof
        (VACATION, "en", "de"),
    ],
)
def test_a_passage_leaves_the_language_of_its_document_on_strong_evidence_only(
    text: str, around: str, language: str
) -> None:
    assert detect_language(text, around) == language
