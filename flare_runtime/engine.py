"""The FLARE loop: draft, judge, look up or commit. Answers are streams of events."""

from collections.abc import Callable, Iterator, Sequence

from critic import Critic
from flare_runtime.blocklist import Blocklist
from flare_runtime.config import FlareConfig
from flare_runtime.errors import SignalError
from flare_runtime.events import Event, Finished
from flare_runtime.language_model import LanguageModel, Message
from flare_runtime.language_model.checks import check_layers
from flare_runtime.parts import Parts
from flare_runtime.retrieval import Retriever
from flare_runtime.token_text import encodable
from flare_runtime.triggers.expression import build_trigger
from flare_runtime.turn import Turn
from flare_runtime.turn_log import TurnLog

Escalate = Callable[[str, str], None]
"""Called with question and answer so far when an answer is handed on to people."""


class FlareEngine:
    """Answers questions from a corpus, looking up more while it writes.

    It keeps no state between turns. Without ``blocklist`` the configured file is read.

    Raises:
        ConfigError: the trigger expression or the configured blocklist cannot be read.
        SignalError: the trigger needs a signal that model and critic do not give.
        ModelError: the model does not give the layers that the critic reads.
    """

    def __init__(
        self,
        model: LanguageModel,
        retriever: Retriever,
        config: FlareConfig | None = None,
        critic: Critic | None = None,
        blocklist: Blocklist | None = None,
        on_escalate: Escalate | None = None,
    ) -> None:
        self._config = config or FlareConfig()
        self._parts = Parts(
            model=model,
            retriever=retriever,
            config=self._config,
            critic=critic,
            blocklist=blocklist or Blocklist.configured(self._config.blocklist),
            on_escalate=on_escalate,
        )
        trigger = build_trigger(self._config.trigger, critic, ask=lambda ids, text: "")
        given = {*model.signals, *({"critic"} if critic else ())}
        if missing := sorted(trigger.needs - given):
            raise SignalError(
                f"the trigger {self._config.trigger.when!r} needs {', '.join(missing)}, which "
                f"{model.name} does not give{'' if critic else ' without a critic'}; "
                "choose another trigger.when"
            )
        check_layers(model, critic.layers if critic else ())

    @property
    def config(self) -> FlareConfig:
        """The settings in force."""
        return self._config

    def stream(
        self, question: str, history: Sequence[Message] = (), lookups: bool = True
    ) -> Iterator[Event]:
        """Answer ``question``; every event comes as it happens, ``Finished`` last.

        Args:
            question: the user's last turn.
            history: earlier turns, oldest first.
            lookups: False answers from the first hop alone.

        Raises:
            FlareError: after ``Finished`` with the outcome "failed"; before any event when the
                question cannot be laid out at all.
        """
        return Turn(self._parts, encodable(question), history, lookups).run()

    def answer(
        self, question: str, history: Sequence[Message] = (), lookups: bool = True
    ) -> TurnLog:
        """Drain ``stream`` and return the record of the turn."""
        for event in self.stream(question, history, lookups):
            if isinstance(event, Finished):
                turn = event.turn
        return turn
