"""Sets up judges that send their requests in provider batches, and reports which batches are still open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from arena.present.numbers import counted
from arena.store import Store
from arena.store.batches import OpenBatch, StoredBook, open_batches
from judges.errors import InputError, ProviderError
from judges.judge import Judge, Stop
from judges.providers import open_provider
from judges.spec import JudgeSpec

if TYPE_CHECKING:
    from judges.batch_servers import Batch, BatchServer
    from judges.providers.hosted import HostedProvider


class BatchesWaiting(Struct, frozen=True):
    """Summary of one judge's batches with missing replies.

    Attributes:
        handed_in: whether the provider's server has confirmed the batches.
        requests: number of requests in these batches that have no judgment yet.
        since: when the oldest of these batches was created, in seconds since 1970.
    """

    judge: str
    handed_in: bool
    batches: int
    requests: int
    since: float


def ask_in_batches(judges: Mapping[str, Judge], store: Store, stop: Stop, *, wait: bool) -> None:
    """Make judges declared with ``mode: batch`` send their requests in batches, which this store records."""
    _refuse_twice(judges, store)
    for judge in judges.values():
        if not judge.spec.in_batches:
            continue
        from judges.batches import BatchProvider

        provider = cast("HostedProvider", judge.provider)
        book = StoredBook(store, judge.name, judge.spec.provider, judge.spec.model)
        server = open_server(judge.spec, provider)
        batching = BatchProvider(provider, server, book, judge.halt, patience_s=judge.spec.max_retry_s, wait=wait)
        stop.tell(batching.leave)
        judge.provider = batching


def open_server(spec: JudgeSpec, provider: HostedProvider) -> BatchServer:
    """Open the batch API of a judge's provider."""
    from judges.batch_servers import AnthropicBatches, OpenAIBatches

    return (AnthropicBatches if spec.provider == "anthropic" else OpenAIBatches)(spec, provider)


async def cancel(batches: Iterable[OpenBatch], judges: Mapping[str, JudgeSpec]) -> AsyncIterator[tuple[str, str]]:
    """Cancel batches on the provider's server; a later run still collects the replies that exist.

    Yields for each batch the server's name for it (our own marker if the server gave none) and the problem with
    cancelling it, empty if there was none.
    """
    chosen: list[tuple[Batch, JudgeSpec]] = []
    for each in batches:
        spec = judges.get(each.judge)
        if spec is None or not spec.in_batches or (spec.provider, spec.model) != (each.provider, each.model):
            raise InputError(
                f"--cancel: declare judges.{each.judge} with provider {each.provider!r}, model {each.model!r} "
                "and 'mode: batch', as it was when the batch was sent"
            )
        chosen.append((each.batch, spec))
    for batch, spec in chosen:
        if batch.remote_id is None:
            yield batch.marker, "the server did not confirm it; 'ragleague run CONFIG' looks for it first"
            continue
        provider = cast("HostedProvider", open_provider(spec))
        server = open_server(spec, provider)
        problem = ""
        try:
            await server.cancel(batch.remote_id)
        except ProviderError as error:
            problem = str(error)
        finally:
            await server.close()
            await provider.close()
        yield batch.remote_id, problem


def _refuse_twice(judges: Mapping[str, Judge], store: Store) -> None:
    for each in waiting(open_batches(store)):
        judge = judges.get(each.judge)
        if judge is not None and not judge.spec.in_batches:
            where = (
                f"{each.requests} of its requests are in batches that are paid for; keep 'mode: batch' until a run "
                "has fetched the replies"
                if each.handed_in
                else f"the server may have a batch of {each.requests} of its requests; keep 'mode: batch', "
                "so that the next run looks for it"
            )
            raise InputError(
                f"judges.{each.judge}: {where}, or discard these batches with 'ragleague batches CONFIG --forget'"
            )


def waiting(batches: Iterable[OpenBatch]) -> list[BatchesWaiting]:
    """Summarise the open batches of each judge; those that the server has confirmed come first."""
    by_judge: defaultdict[tuple[bool, str], list[OpenBatch]] = defaultdict(list)
    for each in batches:
        by_judge[each.batch.remote_id is None, each.judge].append(each)
    return [
        BatchesWaiting(
            judge,
            not unknown,
            len(judge_batches),
            sum(each.open for each in judge_batches),
            min(each.batch.made_at for each in judge_batches),
        )
        for (unknown, judge), judge_batches in sorted(by_judge.items(), key=itemgetter(0))
    ]


def waiting_lines(waits: Iterable[BatchesWaiting]) -> list[str]:
    """A line for the user about the open batches of each judge."""
    lines = []
    for each in waits:
        batches, since = counted(each.batches, "batch", "batches"), moment(each.since)
        lines.append(
            f"judge {each.judge!r} waits for {each.requests} replies in {batches} since {since}"
            if each.handed_in
            else f"judge {each.judge!r}: it is not known whether the server has {batches} of {each.requests} requests, "
            f"handed in without an answer since {since}"
        )
    return lines


def moment(seconds: float) -> str:
    """Format a time in seconds since 1970 to the minute, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
