"""A learned version goes to a share of the devices first, and is taken back when they lose more.

Besides `runtime/policy_trials.py`, about `core/ranked/watches.py`, `policy/trial.py`,
`access/rest/learned_versions.py` and `access/rest/policy_manager.py`.
"""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from structlog.testing import capture_logs

from lasthop.access.rest.app import make_app
from lasthop.access.rest.settings import RestSettings
from lasthop.clock import HOUR, SECOND
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.ranked import watches
from lasthop.decision.trial_verdict import TrialGroup, group_of
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import Conflict, InvalidRequest, NotFound, StoreBroken
from lasthop.events import Kind
from lasthop.policy.store import CONTENT, TRIAL, PolicyStore
from lasthop.runtime.learned import LearnedPolicies
from lasthop.runtime.policy_trials import PolicyTrials
from lasthop.runtime.settings.capacity import Topics
from lasthop.store.memory import MemoryStore
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory
from tests.runtime.test_learned import version

DEVICES = 60
PERCENT = 40.0


class Trial:
    """A gateway in memory with devices, a version in force and one on trial."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = PolicyStore(directory)
        self.before = self.store.publish(version("before", policy="on-line"))
        self.learned = LearnedPolicies(directory)
        assert self.learned.poll()
        self.live = LiveInMemory(store=MemoryStore())
        identity = Identity(name="test", policies=self.learned)
        self.live.gateway = Gateway(
            identity, self.live.store.open(), random64=lambda: 1, now=self.live.now()
        )
        self.trials = PolicyTrials(self.learned, self.live, Topics(trial_hours=20))
        for number in range(DEVICES):
            self.live.register(f"d{number}")
        for session in self.sessions():
            self.live.gateway.ranked.subscribe(session, "news", TopicTerms(), self.live.now())

    def sessions(self) -> list[Any]:
        deliveries = self.live.gateway.deliveries
        return [deliveries.session(device) for device in deliveries.registry]

    async def begin(self, policy: str = "on-demand", percent: float = PERCENT) -> str:
        made = version("next", policy=policy)
        lineage = msgspec.structs.replace(made.lineage, made_at=self.live.now())
        name = self.store.publish(msgspec.structs.replace(made, lineage=lineage), percent=percent)
        assert self.learned.poll()
        await self.trials.follow()
        return name

    def labels(self) -> dict[str, str]:
        ranked = self.live.gateway.ranked
        found = {}
        for session in self.sessions():
            subscription = ranked.subscription(session, "news")
            assert subscription is not None
            found[session.device.name] = subscription.choice.label
        return found

    def suffer(self, lost: int, group: TrialGroup, *, read: int = 20) -> None:
        """Let each device of a group have read and lost so many messages."""
        for watch in self.live.gateway.ranked.watches._watches[group].values():
            watch[0].read, watch[0].lost = read, lost

    def events(self) -> list[dict[str, Any]]:
        self.live.turn()
        pages = self.live.store.events(0, 1 << 24)
        lines = (line for page in pages for line in page.lines.splitlines())
        return [msgspec.json.decode(line) for line in lines]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path / "policies")


def group(name: str, device: str, percent: float = PERCENT) -> TrialGroup | None:
    return group_of(name, "default", device, percent)


async def test_a_new_version_decides_for_its_share_of_the_devices_and_no_other(
    trial: Trial,
) -> None:
    name = await trial.begin()
    for device, label in trial.labels().items():
        tried = group(name, device) is TrialGroup.TRIAL
        assert label == (f"on-demand@{name}" if tried else f"on-line@{trial.before}")
    assert 0.2 * DEVICES < sum(name in label for label in trial.labels().values()) < 0.6 * DEVICES
    assert trial.learned.index.version == trial.before


async def test_more_devices_keep_those_that_have_it(trial: Trial) -> None:
    name = await trial.begin(percent=20)
    first = {device for device, label in trial.labels().items() if name in label}
    status = await trial.trials.widen(80)
    assert status.trial is not None
    assert status.trial.percent == 80
    second = {device for device, label in trial.labels().items() if name in label}
    assert first < second


async def test_it_is_taken_back_by_itself_when_its_devices_lose_more(trial: Trial) -> None:
    name = await trial.begin()
    trial.suffer(1, TrialGroup.CONTROL)
    trial.suffer(10, TrialGroup.TRIAL)
    with capture_logs() as logs:
        verdict = await trial.trials.judge()
        assert trial.learned.poll()
        await trial.trials.follow()
    assert verdict is not None
    assert set(trial.labels().values()) == {f"on-line@{trial.before}"}
    assert trial.learned.tried is None
    (entry,) = [entry for entry in logs if entry["event"] == "policy_trial"]
    assert entry["state"] == "taken back"
    assert "live loss is 33.3%" in entry["reason"]
    status = await trial.trials.status()
    assert status.trial is not None
    assert (status.trial.version, status.trial.state) == (name, "taken back")
    assert await trial.trials.judge() is None


async def test_it_is_promoted_when_the_trial_is_over(trial: Trial) -> None:
    name = await trial.begin()
    trial.suffer(1, TrialGroup.CONTROL)
    trial.suffer(1, TrialGroup.TRIAL)
    await trial.trials.judge()
    assert not trial.learned.poll()
    trial.live.time += 20 * HOUR
    await trial.trials.judge()
    assert trial.learned.poll()
    await trial.trials.follow()
    assert set(trial.labels().values()) == {f"on-demand@{name}"}
    assert trial.learned.index.version == name
    assert trial.store.roll_back() == trial.before


async def test_without_a_length_only_people_promote(trial: Trial) -> None:
    trials = PolicyTrials(trial.learned, trial.live, Topics(trial_hours=0))
    await trial.begin()
    trial.live.time += 1000 * HOUR
    await trials.judge()
    assert not trial.learned.poll()
    status = await trials.promote("looks good")
    assert status.in_force == trial.learned.index.version != trial.before
    with pytest.raises(Conflict, match="no version"):
        await trials.promote("once more")


async def test_the_log_says_what_became_of_it(trial: Trial) -> None:
    name = await trial.begin()
    await trial.trials.take_back("complaints")
    changes = [event for event in trial.events() if event["kind"] == Kind.POLICY_CHANGED]
    said = [event for event in changes if "dev" not in event]
    assert [(event["policy"], event["count"], event["reason"]) for event in said] == [
        (name, 40, "on trial"),
        (name, 40, "taken back: complaints"),
    ]
    followed = [event["policy"] for event in changes if "dev" in event]
    assert len(followed) == 2 * sum(label == f"on-demand@{name}" for label in followed)


async def test_a_watch_follows_a_feed_to_its_new_terms_and_ends_with_the_trial(
    trial: Trial,
) -> None:
    name = await trial.begin()
    ranked = trial.live.gateway.ranked
    session = next(s for s in trial.sessions() if group(name, s.device.name) is TrialGroup.TRIAL)
    first = ranked.subscription(session, "news")
    assert first is not None
    assert first.watch is not None
    first.watch.read = 3
    ranked.subscribe(session, "news", TopicTerms(max=2), trial.live.now())
    second = ranked.subscription(session, "news")
    assert second is not None
    assert second.watch not in (None, first.watch)
    assert (3, 0) in ranked.watches.counts(TrialGroup.TRIAL)
    await trial.trials.take_back("enough")
    assert second.watch is None


async def test_no_more_devices_are_watched_than_help(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "MOST_DEVICES", 3)
    await trial.begin()
    for part in TrialGroup:
        assert len(trial.live.gateway.ranked.watches.counts(part)) == 3


async def test_a_restarted_gateway_goes_on_with_the_trial(trial: Trial) -> None:
    name = await trial.begin()
    again = LearnedPolicies(trial.directory)
    assert again.poll()
    assert again.tried is not None
    assert (again.tried.trial.version, again.index.version) == (name, trial.before)


@pytest.mark.parametrize("harm", ["changed", "gone", "trial"])
async def test_a_damaged_version_is_not_tried(trial: Trial, harm: str) -> None:
    name = trial.store.publish(version("next", policy="on-demand"), percent=5)
    path = trial.directory / name / CONTENT
    if harm == "changed":
        path.write_bytes(path.read_bytes().replace(b"next", b"text"))
    elif harm == "gone":
        path.unlink()
    else:
        (trial.directory / TRIAL).write_bytes(b'{"version":')
    with capture_logs() as logs:
        assert not trial.learned.poll()
        assert not trial.learned.poll()
    assert [entry["event"] for entry in logs] == ["policy_refused"]
    assert trial.learned.tried is None
    assert trial.learned.index.version == trial.before


def test_trials_are_files_that_only_their_owner_reads(tmp_path: Path) -> None:
    store = PolicyStore(tmp_path / "policies")
    assert store.trial() is None
    assert store.on_trial() is None
    store.publish(version("one"), percent=5)
    assert stat.S_IMODE((store.root / TRIAL).stat().st_mode) == 0o600
    (store.root / TRIAL).write_bytes(b"?")
    with pytest.raises(StoreBroken, match="trial"):
        store.trial()


def test_the_first_version_is_tried_beside_no_learned_one(tmp_path: Path) -> None:
    store = PolicyStore(tmp_path)
    name = store.publish(version("one"), percent=5)
    assert store.pointer() is None
    found = store.on_trial()
    assert found is not None
    assert (found[0].version, found[1].version) == (name, name)
    store.promote("good", 7 * SECOND)
    pointer = store.pointer()
    assert pointer is not None
    assert (pointer.version, pointer.before) == (name, ())


def test_a_version_in_force_for_all_ends_the_trial_of_another(tmp_path: Path) -> None:
    store = PolicyStore(tmp_path)
    store.publish(version("one"), percent=5)
    store.publish(version("two"))
    found = store.trial()
    assert found is not None
    assert (found.state, found.reason) == ("taken back", "a newer version is in force")


def test_a_trial_that_ended_meanwhile_is_not_ended_again(tmp_path: Path) -> None:
    store = PolicyStore(tmp_path)
    store.publish(version("one"), percent=5)
    second = store.publish(version("two", policy="on-demand"), percent=5)
    with pytest.raises(Conflict, match="another version"):
        store.take_back("late", 0, version="one")
    with pytest.raises(InvalidRequest, match="percent"):
        store.widen(0)
    store.take_back("in time", 0, version=second)
    with pytest.raises(Conflict, match="no version"):
        store.widen(50)
    with pytest.raises(NotFound):
        store.roll_back()


@pytest.fixture
async def http(trial: Trial) -> AsyncIterator[httpx.AsyncClient]:
    door = make_app(trial.live, RestSettings(open_house=True), policy_manager=trial.trials)
    async with knock(door) as client:
        yield client


async def test_administrators_see_and_end_a_trial_over_rest(
    trial: Trial, http: httpx.AsyncClient
) -> None:
    assert (await http.get("/v1/policy")).json() == {
        "in_force": trial.before,
        "refused": 0,
        "trial": None,
    }
    refused = await http.post("/v1/policy/trial/promote")
    assert refusal(refused) == (409, "conflict", None)
    name = await trial.begin()
    trial.suffer(1, TrialGroup.CONTROL)
    trial.suffer(5, TrialGroup.TRIAL)
    shown = (await http.get("/v1/policy")).json()["trial"]
    assert (shown["version"], shown["state"], shown["percent"]) == (name, "running", PERCENT)
    assert shown["trial"]["loss"] == 0.2
    assert shown["control"]["messages"] == 21 * shown["control"]["devices"]
    wider = await http.put("/v1/policy/trial", json={"percent": 90})
    assert wider.json()["trial"]["percent"] == 90
    assert refusal(await http.put("/v1/policy/trial", json={"percent": 0}))[:2] == (
        400,
        "invalid_request",
    )
    ended = await http.post("/v1/policy/trial/take-back", json={"reason": "complaints"})
    assert ended.json()["trial"]["reason"] == "complaints"
    assert ended.json()["in_force"] == trial.before
    assert set(trial.labels().values()) == {f"on-line@{trial.before}"}


async def test_a_gateway_without_learned_policies_says_so(live: LiveInMemory) -> None:
    async with knock(make_app(live, RestSettings(open_house=True))) as client:
        assert refusal(await client.get("/v1/policy"))[:2] == (404, "not_found")


@pytest.fixture
def live() -> LiveInMemory:
    return LiveInMemory()
