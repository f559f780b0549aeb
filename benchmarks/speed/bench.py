"""What every group of measurements is given: options, material, bases, the embedder, the web server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.test import override_settings

from accounts.access import Actor
from accounts.models import Scope
from accounts.services.api_keys import issue_key
from accounts.tenancy import tenant_scope
from benchmarks.ground import alone, ground
from benchmarks.progress import say
from benchmarks.speed.filling import Filled, Wanted, filled
from benchmarks.speed.material import Material, Question, is_complete, read_material
from benchmarks.speed.measurement import Results
from benchmarks.speed.web import Client, WebServer, web_server
from benchmarks.vector_cache import CachedEmbedder
from providers.backends.e5 import MODEL
from providers.backends.e5.embedder import LocalE5Embedder
from providers.base import Embedder
from providers.registry import embedder_for
from search.request import SearchRequest
from search.retrieval.filters import compile_filter

SERVING_THREADS = (
    1  # of the embedder in every process that answers, ours and by hand; as `make up` has it
)
MATERIAL_THREADS = 2
_TENANT = "speed"


@dataclass(frozen=True, slots=True)
class Options:
    """How much is measured."""

    shapes: tuple[str, ...]
    sizes: tuple[int, ...]  # chunks of the one large base
    filtered: int  # chunks of the base for filters, groups, budgets
    chinese: int
    tenants: int
    crossing: tuple[int, ...]
    passages: int  # of each language, to make chunks of
    questions: int
    rounds: int  # in which each system answers all questions
    load_s: float  # seconds for each number of clients
    documents: int  # brought in by the workers
    vectors: Path


@dataclass(slots=True)
class Bench:
    """The ground of one run. Bases and material are made when they are first asked for."""

    options: Options
    actor: Actor
    results: Results = field(default_factory=Results)
    _stack: ExitStack = field(default_factory=ExitStack)
    _material: dict[str, Material] = field(default_factory=dict)
    _bases: dict[Wanted, Filled] = field(default_factory=dict)
    _server: WebServer | None = None
    _keys: dict[UUID, str] = field(default_factory=dict)

    @property
    def embedder(self) -> Embedder:
        """The product's embedder in this process; it keeps no vectors."""
        return embedder_for(MODEL)

    def material(self, language: str) -> Material:
        """The text of a language."""
        if language not in self._material:
            say(f"Reading and embedding {self.options.passages:,} passages ({language}) …")
            model = LocalE5Embedder(settings.GROUNDWORK_MODEL_CACHE, MATERIAL_THREADS)
            embedder = CachedEmbedder(model, self.options.vectors)
            self._material[language] = read_material(language, self.options.passages, embedder)
        return self._material[language]

    def questions(self, language: str = "en") -> Sequence[Question]:
        """As many questions as each shape is asked."""
        return self.material(language).questions[: self.options.questions]

    def base(self, chunks: int, language: str = "en") -> Filled:
        """A base of the bench's own tenant."""
        want = Wanted(self.actor, f"speed {language} {chunks}", chunks)
        if want not in self._bases:
            self._bases[want] = filled([want], self.material(language))[0]
        return self._bases[want]

    def client(self) -> Client:
        """A connection to the web server, which starts with the first one."""
        if self._server is None:
            self._server = self._stack.enter_context(web_server(SERVING_THREADS))
        return Client(self._server)

    def key(self, actor: Actor) -> str:
        """A key that may search in the actor's tenant."""
        if actor.tenant_id not in self._keys:
            with tenant_scope(actor.tenant_id):
                _, key = issue_key(actor=actor, name="speed", scopes=[Scope.SEARCH])
            self._keys[actor.tenant_id] = key
        return self._keys[actor.tenant_id]

    @property
    def server(self) -> WebServer | None:
        """The web server, if anything was asked over HTTP."""
        return self._server

    def stop_server(self) -> None:
        """End the web server; the next client starts another one."""
        self._stack.close()
        self._server = None


@contextmanager
def prepared(options: Options) -> Iterator[Bench]:
    """Servers, tables and a tenant; nothing else of ours uses the data folder meanwhile."""
    with (
        alone("speed"),
        alone("evaluation"),
        alone("peers"),
        ground(_TENANT) as actor,
        override_settings(GROUNDWORK_EMBED_THREADS=SERVING_THREADS),
    ):
        bench = Bench(options, actor)
        if not is_complete():
            bench.results.remark(
                "The evaluation sets are not beside the checkout: chunks are made of the sample documents and the "
                "manual, which are few, and the questions are those of the sample."
            )  # fmt: skip
        try:
            yield bench
        finally:
            bench.stop_server()


def request_for(question: Question, base: str) -> SearchRequest:
    """The question as the search service takes it."""
    return SearchRequest(
        question.text,
        knowledge_bases=[base],
        condition=compile_filter(question.filter),
        as_principals=[name for name in question.principals if name != "public"],
    )
