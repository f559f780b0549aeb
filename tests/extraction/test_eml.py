"""Messages → subject, people, the best body, attached text."""

from __future__ import annotations

import email.policy
from email.message import EmailMessage

import pytest

from knowledge.extraction.base import Coverage, ExtractionError, Fault, Limits
from tests.extraction.reading import block_of, read, texts


def _message(body: str = "", **headers: str) -> EmailMessage:
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"] = headers.get("sender", "Ann Lee <ann@example.org>")
    message["To"] = "bo@example.org"
    message["Subject"] = headers.get("subject", "Lunch")
    message["Date"] = "Tue, 05 May 2026 06:00:00 +0200"
    if body:
        message.set_content(body)
    return message


def test_headers_are_heading_paragraph_and_facts() -> None:
    extracted = read("eml", _message("See you.\n\nAnn\n").as_bytes(), "a.eml")
    assert texts(extracted) == [
        "Lunch",
        (
            "From: Ann Lee <ann@example.org>\nTo: bo@example.org\n"
            "Date: Tue, 05 May 2026 06:00:00 +0200"
        ),
        "See you.",
        "Ann",
    ]
    assert extracted.title == "Lunch"
    assert extracted.metadata["author"] == "Ann Lee"
    assert extracted.metadata["created_at"] == "2026-05-05T06:00:00+02:00"
    assert extracted.coverage == Coverage("parts", 1, 1)


def test_encoded_words_and_raw_bytes_in_headers() -> None:
    raw = (
        b"From: =?iso-8859-1?q?J=F8rn?= <j@example.org>\r\n"
        b"Subject: =?utf-8?b?R3LDvA==?=\r\n =?utf-8?b?w59l?=\r\n"
        b"To: K\xf6ln <k@example.org>\r\n\r\nHi\r\n"
    )
    extracted = read("eml", raw, "a.eml")
    assert extracted.title == "Grüße"
    assert "From: Jørn <j@example.org>\nTo: Köln <k@example.org>" in extracted.text


def test_plain_body_wins_over_its_html_copy() -> None:
    message = _message("The same words in plain text.")
    message.add_alternative("<p>The same words in <b>html</b> text.</p>", subtype="html")
    text = read("eml", message.as_bytes()).text
    assert "in plain text" in text
    assert "in html text" not in text


def test_html_body_wins_over_a_stub() -> None:
    message = _message("Use another client.")
    rows = "".join(f"<tr><td>item {n}</td><td>{n} kg</td></tr>" for n in range(20))
    message.add_alternative(f"<table><tr><th>What<th>How much</tr>{rows}</table>", subtype="html")
    extracted = read("eml", message.as_bytes())
    assert "| item 19 | 19 kg |" in extracted.text
    assert "another client" not in extracted.text


def test_attached_text_is_read_and_the_rest_named() -> None:
    message = _message("Body.")
    message.add_attachment("name,kg\nbolt,4\n", subtype="csv", filename="list.csv")
    message.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="plan.pdf")
    extracted = read("eml", message.as_bytes())
    assert texts(extracted)[-3:] == [
        "Attachment: list.csv",
        "name,kg\nbolt,4",
        "Attachment: plan.pdf",
    ]
    assert extracted.warnings == ("The attachment plan.pdf is not read.",)
    assert extracted.coverage == Coverage("parts", 3, 2)


def test_message_within_a_message() -> None:
    message = _message("Look below.")
    message.add_attachment(_message("Inner words.", subject="First offer"))
    extracted = read("eml", message.as_bytes())
    assert block_of(extracted, "First offer").level > 1
    assert extracted.text.endswith("Inner words.")


@pytest.mark.parametrize(
    ("charset", "text"),
    [("ks_c_5601-1987", "스티해"), ("iso-2022-jp", "すみません。"), ("x-unknown", "Größe")],
)
def test_odd_charsets(charset: str, text: str) -> None:
    codec = {"ks_c_5601-1987": "cp949", "x-unknown": "cp1252"}.get(charset, charset)
    raw = f"Subject: s\r\nContent-Type: text/plain; charset={charset}\r\n\r\n".encode()
    assert read("eml", raw + text.encode(codec)).text.endswith(text)


def test_encrypted_part_is_named() -> None:
    raw = (
        b"Subject: secret\r\nContent-Type: multipart/encrypted; boundary=b\r\n\r\n"
        b"--b\r\nContent-Type: application/octet-stream\r\n\r\nxyz\r\n--b--\r\n"
    )
    extracted = read("eml", raw)
    assert "Encrypted part: multipart/encrypted" in extracted.text
    assert "is encrypted or sealed" in extracted.warnings[0]


def test_broken_headers_do_no_harm() -> None:
    raw = (
        b"Date: not a date\r\nFrom: <<>>,;:\r\nContent-Type: ;;;\r\nTo: =?x?q?=ZZ?=\r\n"
        b"Content-Disposition: attachment; filename*0*=bad''%\r\n\r\nStill here.\r\n"
    )
    assert "Still here." in read("eml", raw).text


def test_nesting_is_bounded() -> None:
    raw = b"Subject: x\r\nContent-Type: message/rfc822\r\n\r\n" * 50 + b"Subject: y\r\n\r\nend"
    with pytest.raises(ExtractionError) as caught:
        read("eml", raw, "deep.eml", Limits(max_depth=20))
    assert caught.value.fault is Fault.TOO_LARGE


def test_nothing_but_blanks_has_no_text() -> None:
    assert read("eml", b"      \n\n    \n").text == ""
