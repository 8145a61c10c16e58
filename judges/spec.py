"""The declaration of a judge in the configuration, and the prices of its calls."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import yaml
from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from judges.errors import InputError
from judges.masking import key_in, looks_like_key
from judges.sections import UNLESS_EMPTY, Count, Positive, QuickLoader, RelativePath, Section, beside_file, shortened
from judges.types import Usage

_REQUEST_FIELDS = frozenset(
    {"model", "messages", "system", "temperature", "seed", "max_tokens", "max_completion_tokens", "response_format"}
)
_ONE_WHOLE_REPLY = frozenset({"stream", "n"})
_BATCH_REQUESTS = 50_000
_LOCAL_PROVIDERS = ("transformers", "extractive_qa")
_LOCAL_OPTIONS = {
    "labels": ("transformers",),
    "batch_size": _LOCAL_PROVIDERS,
    "device_map": ("transformers",),
    "attention": ("transformers",),
    "chat_template_kwargs": ("transformers",),
}
"""The providers that have each option of local models."""
_TEMPLATE_ARGUMENTS = frozenset(
    {"conversation", "messages", "chat_template", "tools", "documents", "tokenize", "add_generation_prompt", "padding"}
    | {"continue_final_message", "truncation", "max_length", "return_tensors", "return_dict", "tokenizer_kwargs"}
    | {"sanitize_control_tokens", "return_assistant_tokens_mask"}
)

SECRET = re.compile(r"api[-_ ]?key|secret|password|authorization|credential|token$|^key$", re.IGNORECASE)
"""Matches names of fields that may hold a secret, which belongs in an environment variable instead."""


def _checked_name(function: str | Callable[..., Any], info: ValidationInfo) -> str | Callable[..., Any]:
    if not isinstance(function, str):
        return function
    match = re.fullmatch(r"(?:(?P<file>.+\.py)|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)", function)
    if match is None:
        raise ValueError(f"is written module:function or file.py:function, not {function!r}")
    return function if match["file"] is None else f"{beside_file(Path(match['file']), info)}:{match['name']}"


Named: TypeAlias = Annotated[str | Callable[..., Any], AfterValidator(_checked_name)]
"""A user's function, as ``module:function`` or ``file.py:function``; in Python the function itself is allowed too."""


def usable_address(url: str) -> str:
    """Check a server's address and return it.

    Raises:
        ValueError: the text is no address, or contains a key.
    """
    problem = f"must be the address of a server, such as http://server:8000/v1, not {shortened([url])!r}"
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise ValueError(problem) from error
    names = [name for name, _ in parse_qsl(parts.query)]
    if parts.username is not None or any(map(SECRET.search, names)) or looks_like_key(url):
        raise ValueError("an address may not contain a key or password; put it into an environment variable")
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or re.search(r"\s", url):
        raise ValueError(problem)
    return url


def _not_json(value: Any) -> object:
    """The first part of a YAML value that JSON cannot represent, as text; ``None`` if there is none.

    Such parts are dates, bytes and NaN.
    """
    if isinstance(value, Mapping | list):
        return next(filter(None, map(_not_json, value.values() if isinstance(value, Mapping) else value)), None)
    finite = not isinstance(value, float) or math.isfinite(value)
    return None if (value is None or isinstance(value, str | int | float)) and finite else str(value)


Address = Annotated[str, AfterValidator(usable_address)]


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or looks_like_key(name):
        raise ValueError("must name an environment variable, not hold the key")
    return name


Variable = Annotated[str, AfterValidator(_variable)]

SECRET_VARIABLE: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.IGNORECASE
)
"""Matches names of environment variables that may hold a secret."""
_OF_VERSIONS: Final = re.compile(
    r"(?:.*_)?(?:SHA1?|COMMIT|REVISION|(?:SOURCE)?VERSION|RELEASE|TAG|REF|REF_NAME|BUILD|BUILD_ID|BUILD_NUMBER|RUN_ID|DATE)",
    re.IGNORECASE,
)
"""Pattern of the environment variables that may stand in a ``version``, such as ``GIT_SHA``; none holds a secret."""
_LONGEST_VERSION: Final = 200
_PLACE: Final = re.compile(r"\$\{([^}]*)\}?|\$([A-Za-z_]\w*)")


def _filled_in(version: str, info: ValidationInfo) -> str:
    """Fill in the variables of the environment, ``${GIT_SHA}``, in a version that a YAML file declares."""
    return version if info.context is None else _PLACE.sub(_value_of, version)


def _value_of(place: re.Match[str]) -> str:
    name = place[1] if place[1] is not None else place[2]
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or place[0] != f"${{{name}}}":
        raise ValueError(f"write a variable of the environment as ${{GIT_SHA}}, not {shortened([place[0]])}")
    if SECRET.search(name) or SECRET_VARIABLE.search(name):
        raise ValueError(f"${{{name}}} may be a secret, and a version is kept in the store; name another variable")
    if not _OF_VERSIONS.fullmatch(name):
        raise ValueError(
            f"${{{name}}} is not filled in: only names that end in SHA, COMMIT, REVISION, VERSION, RELEASE, TAG, REF, "
            "REF_NAME, BUILD, BUILD_ID, BUILD_NUMBER, RUN_ID or DATE are"
        )
    value = os.environ.get(name, "").strip()
    if not value:
        raise ValueError(f"the variable {name} is not set; set it, or write the version itself")
    if looks_like_key(value) or "$" in value or not value.isprintable() or len(value) > _LONGEST_VERSION:
        raise ValueError(
            f"the variable {name} holds no version: give one of at most {_LONGEST_VERSION} characters, without '$', "
            "that is not a key"
        )
    return value


Version = Annotated[str, AfterValidator(_filled_in)]
"""A version of a judge or agent; in a YAML file, ``${GIT_SHA}`` stands for the variable of the environment."""

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TRANSPORT_HEADERS = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection"})


def _headers(headers_env: dict[str, str]) -> dict[str, str]:
    """Check the headers that a judge declares, each with the name of the environment variable that holds its value."""
    for header, variable in headers_env.items():
        if not _HEADER.fullmatch(header):
            raise ValueError(f"{header!r} is not a valid header name")
        if header.lower() in _TRANSPORT_HEADERS:
            raise ValueError(f"{header!r} is a header that ragleague sets itself")
        if not re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII) or looks_like_key(variable):
            raise ValueError(f"{header}: name an environment variable; its value does not belong here")
    return headers_env


HeadersEnv = Annotated[dict[str, str], AfterValidator(_headers)]

_SECRET = re.compile(r"api[-_ ]?key|secret|password|authorization|credential", re.IGNORECASE)


class Vendor(NamedTuple):
    """A vendor's default address, and the names of the environment variables for another address and for the key.

    Attributes:
        path: the path that the vendor's SDK puts before that of every request; it is removed from the end of a declared
            address.
    """

    address: str
    address_variable: str
    key_variable: str
    path: str = ""


VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "anthropic": Vendor("https://api.anthropic.com", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "/v1"),
}
"""The vendors of hosted models, by the provider's name in a judge's declaration."""


class Price(Section):
    """US dollars per million tokens."""

    input: Annotated[float, Field(ge=0)]
    """Dollars per million input tokens."""
    output: Annotated[float, Field(ge=0)]
    """Dollars per million output tokens."""
    cached_input: Annotated[float, Field(ge=0)] | None = None
    """Dollars per million input tokens that the server reads from its cache; ``input`` when left out."""


Combine: TypeAlias = Literal["majority", "median", "mean"]
"""How the outcomes of several samples of one judgment become one outcome."""


class JudgeSettings(Section):
    """The settings of a judge that affect its replies; they are stored with the results."""

    provider: Literal["openai", "anthropic", "transformers", "extractive_qa", "lexical", "replay", "python"]
    """A [provider](judges.md): ``openai``, ``anthropic``, ``transformers``, ``extractive_qa``, ``lexical``, ``replay``,
    ``python``."""
    model: str = ""
    """The model's name; ``openai`` and ``anthropic`` need it."""
    replies_as: Annotated[str | None, UNLESS_EMPTY] = None
    """``openai``, ``anthropic``: the model's name in the server's replies, if ``model`` is a name of your own, such as
    that of a deployment."""
    version: Annotated[Version, UNLESS_EMPTY] = ""
    """Change it when the model changes behind its name or address, or write [`${GIT_SHA}`](ci.md#todays-system):
    everything is judged anew. ``python``: it also
    stands for [what cannot be read](judges.md#functions) of the function."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Sampling temperature, 0 to 2. When left out it is not sent; a local model decodes greedily."""
    seed: int | None = None
    """``openai``, ``transformers``: seed of the first sample; each further sample sends the next number."""
    max_tokens: Count = 1024
    """Longest reply in tokens; reasoning models need more. ``extractive_qa``: longest span, 30 when left out."""
    structured_output: bool | Literal["object"] = True
    """``true``: a JSON schema; ``object`` (``openai``): some JSON object; ``false`` if the server takes neither."""
    system_role: bool = True
    """``openai``: ``false`` puts the system message before the user's."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """``openai``, ``anthropic``: further fields of each request."""
    samples: Count = 1
    """Number of samples: how many times the judge is asked for each judgment."""
    combine: Combine = "majority"
    """One outcome of several samples: ``majority`` (what most say; if several lead, a tie or the lowest label),
    ``median`` (the lower) or ``mean``."""
    chat_template_kwargs: Annotated[dict[str, Any], UNLESS_EMPTY] = Field(default_factory=dict)
    """``transformers``: options of the chat template, such as ``{enable_thinking: false}``."""

    def stored(self) -> dict[str, Any]:
        return self.model_dump(mode="json", include=set(JudgeSettings.model_fields))

    @property
    def gives_probabilities(self) -> bool:
        """Whether the judge's replies may contain a probability for each label."""
        return self.provider == "transformers"

    @property
    def hosted(self) -> bool:
        """Whether the model runs on a server, whose replies name the model."""
        return self.provider in VENDORS


class JudgeSpec(JudgeSettings):
    """One entry under ``judges:``. It holds no key, only the name of the environment variable that holds the key."""

    base_url: Address | None = None
    """The server's address. Else ``OPENAI_BASE_URL`` or ``ANTHROPIC_BASE_URL``, else the vendor's own."""
    api_key_env: Variable | None = None
    """The environment variable that holds the key. Default: ``OPENAI_API_KEY`` or ``ANTHROPIC_API_KEY``."""
    headers_env: HeadersEnv = Field(default_factory=dict)
    """``openai``, ``anthropic``: headers, and the environment variables that hold their values, as in
    ``{api-key: AZURE_KEY}``. They replace the key's own header, unless ``api_key_env`` is named too."""
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """``openai``: ``max_completion_tokens`` (default at OpenAI) or ``max_tokens`` (elsewhere)."""
    family: str | None = None
    """The family of models to which the model belongs, such as ``qwen``; see ``families``."""
    concurrency: Count = 16
    """Largest number of calls in flight; for a local model, of prompts that are collected to form batches."""
    mode: Literal["direct", "batch"] = "direct"
    """``openai``, ``anthropic``: ``batch`` sends the requests in [batches](running.md#half-the-price-batches)."""
    batch_requests: Count = _BATCH_REQUESTS
    """``batch``: largest number of requests that wait for batches at the same time."""
    requests_per_minute: Count | None = None
    """Largest number of calls in any sixty seconds."""
    tokens_per_minute: Count | None = None
    """Largest number of tokens, sent and received, in any sixty seconds."""
    timeout_s: Positive = 120.0
    """Seconds one attempt may take; local models ignore it."""
    max_attempts: Count = 6
    """Largest number of attempts at one call, with growing pauses."""
    max_retry_s: Positive = 600.0
    """Longest time for all attempts at one reply. If a server asks for a longer wait, the judge stops."""
    max_cost_usd: Positive | None = None
    """Dollars that one run may spend on the judge; then it sends nothing more."""
    price: Price | None = None
    """Dollars per million tokens; from a packaged list when left out."""
    path: RelativePath | None = None
    """``replay``: the recorded file; ``transformers``, ``extractive_qa``: a model folder."""
    function: Named | None = None
    """``python``: ``module:function`` or ``file.py:function``; it gets the prompt and returns the reply."""
    labels: Literal["written", "likeliest"] = "written"
    """``transformers``: ``likeliest`` [scores the allowed labels](judges.md#local-models)."""
    batch_size: Count | None = None
    """Local: largest number of prompts in one pass of the model; ``concurrency`` when left out."""
    device: str | None = None
    """Local: ``cpu``, ``cuda``, ``cuda:1``; chosen automatically when left out."""
    device_map: str | dict[str, int | str] | None = None
    """``transformers``: in place of ``device``; ``auto`` spreads the model over several devices."""
    attention: str | None = None
    """``transformers``: ``sdpa``, ``flash_attention_2`` or ``eager``."""

    @property
    def other_address(self) -> str | None:
        """The declared address of a hosted model's server; ``None`` if it is the vendor's default."""
        if self.provider not in VENDORS:
            return None
        vendor = VENDORS[self.provider]
        address = os.environ.get(vendor.address_variable, "").strip() if self.base_url is None else self.base_url
        try:
            address = address and usable_address(address)
        except ValueError as error:
            raise InputError(f"{vendor.address_variable}: {error}; correct this environment variable") from error
        return (address.rstrip("/").removesuffix(vendor.path) or None) if address else None

    @property
    def address(self) -> str:
        """The address of a hosted model; empty for other providers."""
        vendor = VENDORS.get(self.provider)
        return "" if vendor is None else self.other_address or vendor.address

    @property
    def address_from(self) -> str:
        """For messages: the setting or environment variable that holds a hosted model's address."""
        if self.base_url is not None or self.other_address is None:
            return "'base_url'"
        return VENDORS[self.provider].address_variable

    @property
    def key_from(self) -> str:
        """The environment variable that holds the key of a hosted model; empty for other providers."""
        return self.api_key_env or (VENDORS[self.provider].key_variable if self.provider in VENDORS else "")

    @property
    def sends_key(self) -> bool:
        """Whether the vendor's usual header carries the key; with ``headers_env`` only if ``api_key_env`` is set."""
        return not self.headers_env or self.api_key_env is not None

    @property
    def secret_from(self) -> str:
        """For messages: where a hosted model's credentials come from."""
        if self.sends_key:
            return f"the key in {self.key_from}"
        return " and ".join(f"{variable} (header {header})" for header, variable in self.headers_env.items())

    @property
    def in_batches(self) -> bool:
        return self.mode == "batch"

    @property
    def runs_here(self) -> bool:
        """Whether the model runs in this process or a worker process, so that its calls cannot be interrupted."""
        return self.provider in _LOCAL_PROVIDERS

    @property
    def ignored_setting(self) -> str:
        """A message that ``timeout_s`` is ignored, for a model on this machine that declares it; else empty."""
        if not (self.runs_here and "timeout_s" in self.model_fields_set):
            return ""
        return "timeout_s is ignored: a call to a model on this machine cannot be interrupted"

    @property
    def at_once(self) -> int:
        return self.batch_requests if self.in_batches else self.concurrency

    @property
    def reply_s(self) -> float | None:
        """Timeout of one attempt; ``None`` for batches, which the server limits, and for local models."""
        return None if self.in_batches or self.runs_here else self.timeout_s

    @property
    def retry_s(self) -> float:
        """Longest time for all attempts at one reply; infinite if attempts have no timeout."""
        return math.inf if self.reply_s is None else self.max_retry_s

    @model_validator(mode="after")
    def _complete(self) -> JudgeSpec:
        if self.provider in VENDORS and not self.model:
            raise ValueError(f"provider {self.provider!r} needs a 'model'")
        if self.runs_here and not (self.model or self.path):
            raise ValueError(f"provider {self.provider!r} needs a 'model' name or a 'path' to a local folder")
        if fixed := self.extra_body.keys() & (_REQUEST_FIELDS | _ONE_WHOLE_REPLY):
            raise ValueError(f"extra_body may not hold {', '.join(sorted(fixed))}, which ragleague sets itself")
        for section in ("extra_body", "chat_template_kwargs"):
            if (invalid := _not_json(getattr(self, section))) is not None:
                raise ValueError(f"{section}: {invalid} is not a JSON value; put quotes around it")
            if secret := next(filter(_SECRET.search, names_in(getattr(self, section))), None):
                raise ValueError(
                    f"{section} may not hold {secret!r}: it would be stored; put keys into environment variables"
                )
            if path := key_in(getattr(self, section)):
                raise ValueError(
                    f"{section}.{'.'.join(path)} looks like a key: it would be stored; "
                    "put keys into environment variables"
                )
        if self.provider == "replay" and self.path is None:
            raise ValueError("provider 'replay' needs a 'path' to recorded replies or verdicts")
        if (self.provider == "python") != (self.function is not None):
            raise ValueError("provider 'python' needs a 'function', and no other provider has one")
        return self

    @model_validator(mode="after")
    def _fits_its_model(self) -> JudgeSpec:
        """Refuse declared options that the provider does not have, or that contradict each other."""
        for name in ("headers_env", "replies_as"):
            if getattr(self, name) and self.provider not in VENDORS:
                raise ValueError(f"provider {self.provider!r} has no {name!r}")
        fields = type(self).model_fields
        for name, providers in _LOCAL_OPTIONS.items():
            value = getattr(self, name)
            if value != fields[name].get_default(call_default_factory=True) and self.provider not in providers:
                hint = "; it goes into 'extra_body'" if name == "chat_template_kwargs" else ""
                raise ValueError(
                    f"provider {self.provider!r} has no '{name}{': likeliest' * (name == 'labels')}'{hint}"
                )
        if fixed := self.chat_template_kwargs.keys() & _TEMPLATE_ARGUMENTS:
            raise ValueError(
                f"chat_template_kwargs may not hold {', '.join(sorted(fixed))}, which ragleague sets itself"
            )
        if self.device is not None and self.device_map is not None:
            raise ValueError("'device' is for the whole model and 'device_map' for its parts; give one of them")
        return self

    @model_validator(mode="after")
    def _fits_its_mode(self) -> JudgeSpec:
        if self.mode == "batch":
            if self.provider not in VENDORS:
                raise ValueError(f"provider {self.provider!r} has no 'mode: batch'")
            if self.requests_per_minute or self.tokens_per_minute:
                raise ValueError("'mode: batch' has no limits per minute; bound it with 'batch_requests'")
        elif self.batch_requests != _BATCH_REQUESTS:
            raise ValueError("'batch_requests' needs 'mode: batch'")
        return self


def names_in(value: Any) -> Iterator[str]:
    """The names of all fields of a JSON value, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names_in(inner)


FREE = Price(input=0, output=0, cached_input=0)
_PER_TOKEN = 1e-6
_CACHE_WRITE = 1.25
"""Anthropic's price of tokens written to its five-minute cache, as a multiple of the input price."""
_CACHED_FROM = 1_024
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def price_of(spec: JudgeSpec) -> Price | None:
    """The declared price, or the packaged list's price; 0 for providers that call no vendor; ``None`` if unknown.

    The discount for batches applies to the list's prices, not to a declared price. The list does not apply to a server
    at another address, which has its own prices.
    """
    if spec.price is not None:
        return spec.price
    if spec.provider not in VENDORS:
        return FREE
    if spec.other_address is not None:
        return None
    # Only a date is removed: gpt-4o-audio-preview or a successor such as claude-opus-4-9 has another price.
    listed = _list()["models"].get(_DATE.sub("", spec.model))
    if listed is None:
        return None
    share = batch_share() if spec.in_batches else 1.0
    return Price.model_validate({kind: share * dollars for kind, dollars in listed.items()})


def cached_from(spec: JudgeSpec) -> int | None:
    """The fewest tokens of a prompt's beginning that the judge's server caches; ``None`` if it caches none.

    In batches no beginning counts, since their requests are answered in any order, and servers promise nothing.
    """
    if spec.provider not in VENDORS or spec.in_batches:
        return None
    return int(_list()["cached_from"].get(_DATE.sub("", spec.model), _CACHED_FROM))


def batch_share() -> float:
    """The price of a token in a batch, as a share of its price in a single request."""
    return float(_list()["batch"])


def list_checked() -> str:
    """The month in which the packaged list of prices was last checked."""
    return str(_list()["checked"])


def cost_usd(usage: Usage, price: Price | None) -> float | None:
    """The cost of ``usage`` in dollars; ``None`` if the price is unknown or the server reported no tokens."""
    if price is None:
        return None
    if usage.input_tokens is None or usage.output_tokens is None:
        return 0.0 if price.input == price.output == 0 else None
    cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
    cached_price = price.input if price.cached_input is None else price.cached_input
    fresh = usage.input_tokens - cached - written
    sent = (fresh + _CACHE_WRITE * written) * price.input + cached * cached_price
    return (sent + usage.output_tokens * price.output) * _PER_TOKEN


@cache
def _list() -> dict[str, Any]:
    text = resources.files("judges").joinpath("prices.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=QuickLoader)  # noqa: S506 - a safe loader
    return loaded
