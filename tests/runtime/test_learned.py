"""A gateway takes a new version of the policy while it runs, and keeps the old one if it is bad."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from lasthop.clock import SECOND
from lasthop.core.gateway import Identity
from lasthop.decision.policies import POLICIES, Tuning
from lasthop.decision.policies.memory import memory_of
from lasthop.decision.volume.policy_choice import PolicyChoice
from lasthop.policy import FORMAT, Forwarding, Lineage, Policies
from lasthop.policy.store import CONTENT, POINTER, PolicyStore
from lasthop.runtime import learned as learned_module
from lasthop.runtime.learned import LearnedPolicies
from lasthop.runtime.settings.capacity import Topics
from tests.core.ranked.phone import Phone
from tests.core.rig import Rig


def version(note: str, **forwarding: Any) -> Policies:
    lineage = Lineage(code="1", made_at=1_800_000_000_000_000, note=note)
    return Policies(FORMAT, "draft", lineage, default=Forwarding(**forwarding))


def test_a_new_version_is_taken_once(tmp_path: Path) -> None:
    learned = LearnedPolicies(tmp_path)
    assert not learned.poll()
    assert learned.index.version == "built-in"
    first = PolicyStore(tmp_path).publish(version("one", policy="predictive", price=2.0))
    assert learned.poll()
    assert not learned.poll()
    assert learned.index.forwarding("a", "d", "t").version == first
    second = PolicyStore(tmp_path).publish(version("two"))
    held = learned.index
    assert learned.poll()
    assert (held.version, learned.index.version) == (first, second)
    assert PolicyStore(tmp_path).roll_back() == first
    assert learned.poll()
    assert learned.index.version == first


def test_devices_hear_what_others_found_on_their_network_also_from_a_later_version(
    tmp_path: Path,
) -> None:
    learned = LearnedPolicies(tmp_path)
    rig = Rig()
    rig.gateway.contacts.tell_of_networks(learned.heartbeat)
    assert rig.welcome(rig.connect(network="op:one")).found is None
    found = msgspec.structs.replace(version("nets"), heartbeats={"op:one": 290 * SECOND})
    PolicyStore(tmp_path).publish(found)
    assert learned.poll()
    assert rig.welcome(rig.connect(network="op:one")).found == 290
    assert rig.welcome(rig.connect(network="op:two")).found is None


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_policy_remembers_can_be_given_to_another(tmp_path: Path, policy: str) -> None:
    memory = memory_of(POLICIES[policy](Tuning(max=3)))
    kept = msgspec.json.decode(msgspec.json.encode(memory))
    PolicyStore(tmp_path).publish(version("warm", policy=policy, memory=kept))
    assert LearnedPolicies(tmp_path).poll()


@pytest.mark.parametrize(
    "bad, reason",
    [
        (version("unknown", policy="wild"), "unknown policy"),
        (
            version("broken", policy="predictive", memory={"_rhythm": {"_rates": []}}),
            "does not work",
        ),
        (version("types", policy="unified", memory={"_arrivals": "many"}), "does not work"),
    ],
)
def test_a_version_that_does_not_work_is_refused_and_said_once(
    tmp_path: Path, bad: Policies, reason: str
) -> None:
    policy_store, learned = PolicyStore(tmp_path), LearnedPolicies(tmp_path)
    good = policy_store.publish(version("good"))
    assert learned.poll()
    policy_store.publish(bad)
    with capture_logs() as logs:
        assert not learned.poll()
        assert not learned.poll()
    assert [entry["event"] for entry in logs] == ["policy_refused"]
    assert reason in logs[0]["reason"]
    assert (learned.index.version, learned.refused) == (good, 1)


@pytest.mark.parametrize("harm", ["changed", "cut", "gone", "pointer"])
def test_a_damaged_version_is_refused(tmp_path: Path, harm: str) -> None:
    policy_store, learned = PolicyStore(tmp_path), LearnedPolicies(tmp_path)
    good = policy_store.publish(version("good"))
    assert learned.poll()
    path = tmp_path / policy_store.publish(version("next")) / CONTENT
    data = path.read_bytes()
    if harm == "changed":
        path.write_bytes(data.replace(b"next", b"text"))
    elif harm == "cut":
        path.write_bytes(data[:-20])
    elif harm == "gone":
        path.unlink()
    else:
        (tmp_path / POINTER).write_bytes(b'{"version":')
    with capture_logs() as logs:
        assert not learned.poll()
    assert logs[0]["event"] == "policy_refused"
    assert learned.index.version == good


def test_a_choice_names_the_version_that_it_comes_from(tmp_path: Path) -> None:
    learned = LearnedPolicies(tmp_path)
    assert learned.choose("a", "d", "t") == PolicyChoice("predictive")
    assert learned.choose("a", "d", "t", "unified") == PolicyChoice("unified")
    everywhere = Topics(policy="predictive", keep_default=False).choice()
    assert LearnedPolicies(tmp_path, everywhere).choose("a", "d", "t", "unified") == everywhere
    assert Topics().choice() is None
    assert Topics(policy="unified").choice() == PolicyChoice("unified")
    memory = memory_of(POLICIES["predictive"](Tuning(max=3)))
    name = PolicyStore(tmp_path).publish(
        version("one", policy="predictive", price=2.0, memory=memory)
    )
    assert learned.poll()
    choice = learned.choose("a", "d", "t")
    assert choice.label == f"predictive@{name}"
    assert (choice.price, choice.plain.memory) == (2.0, {})
    assert choice.memory


def test_feeds_follow_a_new_version_and_their_events_name_it(tmp_path: Path) -> None:
    learned = LearnedPolicies(tmp_path)
    rig = Rig()
    rig.identity = Identity(open_house=True, policies=learned)
    rig.gateway = rig._start()
    phone = Phone(rig)
    phone.connect()
    phone.subscribe(max=3)
    phone.publish(1.0)
    memory = memory_of(POLICIES["predictive"](Tuning(max=3))) | {"_offline": 0.125}
    name = PolicyStore(tmp_path).publish(version("one", policy="predictive", memory=memory))
    assert learned.poll()
    assert rig.gateway.ranked.policies_changed(rig.now) == 1
    assert rig.gateway.ranked.policies_changed(rig.now) == 0
    rig.run()
    phone.publish(2.0)
    events = [event for event in rig.events() if event.get("topic") == "news"]
    (changed,) = [event for event in events if event["kind"] == "policy_changed"]
    assert changed["policy"] == f"predictive@{name}"
    assert json.loads(changed["terms"])["memory"]["_offline"] == 0.125
    published = [event for event in events if event.get("source") == "publisher:shop"]
    accepted = [event["policy"] for event in published]
    assert accepted == ["predictive", f"predictive@{name}"]
    # After a restart it goes on as it was: nothing is new about the same version.
    rig.crash()
    assert rig.gateway.ranked.policies_changed(rig.now) == 0


async def test_a_running_gateway_looks_for_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_module, "LOOK", 0.001)
    learned = LearnedPolicies(tmp_path)
    heard = asyncio.Event()

    async def changed() -> None:
        heard.set()

    task = asyncio.create_task(learned.follow(changed))
    PolicyStore(tmp_path).publish(version("one"))
    await asyncio.wait_for(heard.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert learned.index.policies.lineage.note == "one"
