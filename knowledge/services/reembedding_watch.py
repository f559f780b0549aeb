"""Following a change of model from the command line, with a progress bar."""

from __future__ import annotations

import time
from uuid import UUID

from tqdm import tqdm

from accounts.tenancy import tenant_scope
from knowledge.models import ReEmbedding

_POLL_S = 1.0


def watch_reembedding(tenant_id: UUID, job_id: UUID) -> ReEmbedding:
    """Wait until the change has ended, by whatever worker does it; returns how it ended."""
    with tqdm(total=0, desc="Computing vectors", unit="chunk", disable=None) as bar:
        while True:
            with tenant_scope(tenant_id):
                job: ReEmbedding = ReEmbedding.objects.get(id=job_id)
            bar.total, bar.n = max(job.total, job.done), job.done
            bar.refresh()
            if not job.is_unfinished:
                return job
            time.sleep(_POLL_S)
