"""Guesses the legacy charset of text that is not Unicode, by how natural each reading looks.

General detectors fail on the short texts that are common here (a price list, a note of one line),
so each candidate is decoded strictly and judged by the letters that come out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

_SAMPLE_BYTES = 24_000
_SAFE_CUT = re.compile(rb".*[\x00-\x2f]", re.DOTALL)
_UNLIKELY = 0.25  # below this nothing convinced

_CHINESE = frozenset(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能"
    "好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进"
    "把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使"
    "這來國個說們為時後對還發當無開經頭動兩長樣現與進實點種聲話問機給幾業間麼電門東書員內會過學裡從將見關體系統資料"
)
_HANGUL = frozenset(
    "이다는가에의을를은한하고지도로기사어자리그나시인해스대일아서정수보있라과부장제상주것으들국여공전원성위조게동구만유"
    "비오생안되계관요없니면경중세내방소할말신습우무문때연등분실치업적트회적했진당년월며학"
)
_KANA = frozenset(chr(code) for code in range(0x3041, 0x30FF))
_CJK_PUNCTUATION = frozenset("、。，．・：；？！（）「」『』〈〉《》【】〔〕“”‘’—…～￥　·々ー")
_LATIN_MARKS = frozenset("“”‘’„‚–—…€£¢§©®°«»¿¡•·×±½¼¾²³µ™¥\u00a0")

# Letters beyond ASCII of one language each: a line is judged by its best language.
_WESTERN = (
    "äöüßÄÖÜ", "éèàçêâîôûëïùœæÉÈÀÇÊ", "áéíóúñüÁÉÍÓÚÑªº", "ãõáéíóúâêôçàÃÕÇÉÁ", "åäöæøéÅÄÖÆØ",
    "ëïéèóöü", "àèéìòùÀÈ", "áéíóúýþðæöÞÐ",
)  # fmt: skip
_CENTRAL = (
    "ąćęłńóśźżĄĆĘŁŃÓŚŹŻ", "áčďéěíňóřšťúůýžÁČĎÉĚÍŇÓŘŠŤÚŮÝŽľĺŕäôĽ", "áéíóöőúüűÁÉÍÓÖŐÚÜŰ",
    "čćđšžČĆĐŠŽ", "ăâîşţĂÂÎŞŢ",
)  # fmt: skip
_TURKISH = ("çğıöşüâîÇĞİÖŞÜ",)

# Frequent letters first group, the other letters of the alphabet second.
_ALPHABETS: dict[str, tuple[str, str]] = {
    "cp1251": ("оеаинтсрвлкмдпуя", "ыьгзбчйхжшюцщэфъёіїєґў"),
    "cp1253": ("αοιετσνηυρςπκμλ", "δγωθφχβξζψάέήίόύώ"),
    "cp1255": ("יוהלארתשבמ", "נעדכםקפחטסןגזצךץף"),
    "cp1256": ("اليمنورتبةد", "عفسكقحجصشطخذزضغثظىءأإآؤئپچژگ"),
    "cp874": ("านรอกเงมยลวดทส่้ตัี", "แคะบพจปิขหใชโไผฉธญซณภฟถ์ึืูุ็ๆฎฏฐฑฒฆฌศษฝฮำ"),
}


def guess_charset(data: bytes) -> str | None:
    """The codec under which `data` reads most naturally, or None when nothing convinces."""
    sample = _telling_sample(data)
    best: str | None = None
    best_score = _UNLIKELY
    for codec, score in _scores(sample):
        if score > best_score + 1e-9 and _decodes(data, codec):
            best, best_score = codec, score
    return best


def _telling_sample(data: bytes) -> bytes:
    """The first lines that hold bytes beyond ASCII, cut so that no character is torn."""
    lines: list[bytes] = []
    size = 0
    for line in _iter_lines(data):
        if not line.isascii():
            lines.append(line)
            size += len(line)
            if size > _SAMPLE_BYTES:
                break
    sample = b"\n".join(lines)
    if len(sample) <= _SAMPLE_BYTES:
        return sample
    # Bytes below 0x30 are never part of a longer character, so a cut after one is safe.
    cut = _SAFE_CUT.match(sample[:_SAMPLE_BYTES])
    return cut[0] if cut else sample[:_SAMPLE_BYTES]


def _iter_lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end]
        start = end + 1


def _decodes(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _scores(sample: bytes) -> Iterator[tuple[str, float]]:
    """Candidates, the more common first: a later one must do better to win."""
    for codec, judge in _JUDGES:
        try:
            text = sample.decode(codec)
        except UnicodeDecodeError:
            continue
        yield codec, judge(text)


def _mean(weights: list[float]) -> float:
    return sum(weights) / len(weights) if weights else 0.0


def _judge_cjk(native: Callable[[str], float]) -> Callable[[str], float]:
    def judge(text: str) -> float:
        return _mean([native(char) for char in text if ord(char) > 0x7F])

    return judge


def _chinese(plane: str, last_lead: int) -> Callable[[str], float]:
    def weight(char: str) -> float:
        if char in _CHINESE:
            return 1.0
        if char in _CJK_PUNCTUATION:
            return 0.7
        if "\u4e00" <= char <= "\u9fff":
            return 0.6 if _lead(char, plane) <= last_lead else 0.15
        return 0.4 if "\uff00" < char < "\uff5f" else -0.3

    return weight


def _japanese(char: str) -> float:
    if char in _KANA:
        return 1.0
    if char in _CJK_PUNCTUATION:
        return 0.7
    if "\u4e00" <= char <= "\u9fff":
        return 0.58 if _lead(char, "euc_jp") <= 0xCF else 0.15
    return 0.4 if "\uff00" < char < "\uff5f" else -0.3


def _korean(char: str) -> float:
    if char in _HANGUL:
        return 1.0
    if "\uac00" <= char <= "\ud7a3":
        return 0.5 if _lead(char, "euc_kr") <= 0xC8 else 0.0
    if char in _CJK_PUNCTUATION:
        return 0.5
    return 0.2 if "\u4e00" <= char <= "\u9fff" else -0.3


def _lead(char: str, codec: str) -> int:
    """The first byte in the old national code: the frequent signs come in its first half."""
    try:
        return char.encode(codec)[0]
    except UnicodeEncodeError:
        return 0xFF


def _judge_alphabet(codec: str) -> Callable[[str], float]:
    frequent, others = (frozenset(letters) for letters in _ALPHABETS[codec])

    def judge(text: str) -> float:
        weights = []
        before = " "
        for char in text:
            if ord(char) > 0x7F:
                weights.append(_letter_weight(char, before, frequent, others))
            before = char
        return _mean(weights)

    return judge


def _letter_weight(
    char: str, before: str, frequent: frozenset[str], others: frozenset[str]
) -> float:
    small = char.lower()
    if small not in frequent and small not in others:
        return 0.3 if char in _LATIN_MARKS else -0.6
    if before.islower() and char.isupper():
        return -0.8  # a capital inside a word: the cases of this reading are swapped
    if before.isascii() and before.isalpha():
        return -0.5
    return 0.9 if small in frequent else 0.45


def _judge_latin(languages: tuple[str, ...], bias: float) -> Callable[[str], float]:
    alphabets = [frozenset(letters) for letters in languages]

    def judge(text: str) -> float:
        weights: list[float] = []
        for line in text.split("\n"):
            weights += max((_latin_weights(line, letters) for letters in alphabets), key=sum)
        return _mean(weights) + bias

    return judge


def _latin_weights(line: str, letters: frozenset[str]) -> list[float]:
    padded = f" {line} "
    weights = []
    for index, char in enumerate(line, start=1):
        if ord(char) <= 0x7F:
            continue
        before, after = padded[index - 1], padded[index + 1]
        inside = before.isalpha() and after.isalpha()
        plain = (before.isascii() and before.isalpha()) or (after.isascii() and after.isalpha())
        if char in letters:
            lone = not before.isalpha() and not after.isalpha()
            weights.append(1.0 if plain else 0.55 if lone else 0.0)
        elif char in _LATIN_MARKS:
            weights.append(0.9 if char in "’·\u00a0" or not inside else -0.5)
        else:
            weights.append(0.2 if plain and unicodedata.category(char)[0] == "L" else -0.5)
    return weights


_JUDGES: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("cp1252", _judge_latin(_WESTERN, 0.0)),
    ("gb18030", _judge_cjk(_chinese("gb2312", 0xD7))),
    ("big5", _judge_cjk(_chinese("big5", 0xC6))),
    ("cp950", _judge_cjk(_chinese("big5", 0xC6))),
    ("big5hkscs", _judge_cjk(_chinese("big5", 0xC6))),
    ("cp932", _judge_cjk(_japanese)),
    ("euc_jp", _judge_cjk(_japanese)),
    ("cp949", _judge_cjk(_korean)),
    ("cp1251", _judge_alphabet("cp1251")),
    ("koi8_r", _judge_alphabet("cp1251")),
    ("koi8_u", _judge_alphabet("cp1251")),
    ("cp866", _judge_alphabet("cp1251")),
    ("cp1250", _judge_latin(_CENTRAL, -0.03)),
    ("iso8859_2", _judge_latin(_CENTRAL, -0.06)),
    ("cp1253", _judge_alphabet("cp1253")),
    ("cp1254", _judge_latin(_TURKISH, -0.03)),
    ("cp1255", _judge_alphabet("cp1255")),
    ("cp1256", _judge_alphabet("cp1256")),
    ("cp874", _judge_alphabet("cp874")),
    ("cp850", _judge_latin(_WESTERN, -0.15)),
    ("mac_roman", _judge_latin(_WESTERN, -0.15)),
)
