# Small random models of transformers' own architectures, with its logits in float32: originals.py FOLDER [NAME…]
#
# Each model is a folder as people publish it (config.json, model.safetensors, tokenizer.json), with `original.f32`:
# logits (ids, vocabulary), and `original.json`: the ids, and for each tensor its shape, middle and width, from which
# `weights` makes its values: the same everywhere, with float16's precision, so that a file of float16 has all of them.
import base64
import json
import math
import os
import re
import sys
import zlib

import numpy
import PIL.Image
import sentencepiece
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentencepiece import sentencepiece_model_pb2
from transformers.models.mllama.image_processing_pil_mllama import MllamaImageProcessorPil
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

VOCAB, LENGTH = 320, 24
TABLE = ".tid2eid"
TEXT = ["the quick brown fox jumps over the lazy dog", "pack my box with five dozen liquor jugs", "Ünïcode – 0123456789 + – ×"]
TEXTS = ["the quick  brown fox", " jumps over\tthe lazy dog ", "Ünïcode ﬁne ½ ①", "日本 liquor", "", "0123456789 + – ×"]
SIZES = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96)
SIZES |= dict(vocab_size=VOCAB, max_position_embeddings=256, tie_word_embeddings=False, pad_token_id=None)
SIZES |= dict(bos_token_id=0, eos_token_id=1)
HEADS = dict(head_dim=16)
EXPERTS = dict(num_local_experts=6, num_experts=6, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=48)
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 64, "rope_theta": 10000.0}
GPT2 = dict(n_embd=64, n_layer=3, n_head=4, n_positions=256, vocab_size=VOCAB, bos_token_id=0, eos_token_id=1)
LATENT = dict(q_lora_rank=24, kv_lora_rank=16, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16)
LATENT |= dict(n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1)
INDEXER = dict(index_n_heads=2, index_head_dim=16, index_topk=64)
DEEPSEEK4 = SIZES | EXPERTS | dict(num_key_value_heads=1, head_dim=32, q_lora_rank=24, qk_rope_head_dim=8, sliding_window=5, o_groups=2, o_lora_rank=24)
DEEPSEEK4 |= dict(index_n_heads=16, index_head_dim=16, index_topk=2, hc_mult=4, hc_eps=0.01, hc_sinkhorn_iters=3, swiglu_limit=0.5)
DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16)
DELTA |= dict(num_hidden_layers=4)

GEMMA4 = SIZES | HEADS | dict(num_hidden_layers=4, tie_word_embeddings=True, sliding_window=8, global_head_dim=32, pad_token_id=0)
GEMMA4 |= dict(hidden_size_per_layer_input=0, vocab_size_per_layer_input=VOCAB, layer_types=["sliding_attention", "full_attention"] * 2)

# Nemotron's own code bounds time steps on slow paths only, transformers always
UNBOUNDED = dict(time_step_min=1e-9)
# GGUF programs divide by n - 1 in Gemma 3n's deviation of gates, transformers by n: the same for as many values as real models have
WIDE = dict(hidden_size_per_layer_input=8, num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"], intermediate_size=[8192] * 2)

T5 = dict(d_model=64, d_kv=16, d_ff=96, num_layers=3, num_decoder_layers=2, num_heads=4, vocab_size=VOCAB, n_positions=512, pad_token_id=0, eos_token_id=1)
WHISPER = dict(d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=64)
WHISPER |= dict(vocab_size=VOCAB, pad_token_id=1, bos_token_id=0, eos_token_id=1, decoder_start_token_id=0, suppress_tokens=[7, 9], begin_suppress_tokens=[1])
# Texts longer than the distances that have a bucket each
LENGTHS = {"DeepseekV4 2": 200, "T5Encoder": 150, "T5Encoder 2": 150, "UMT5Encoder": 150, "T5": 150, "T5 2": 150, "MT5": 150, "UMT5": 150}

# The name of transformers' class without its ending, and its configuration; a number after the name tells variants apart.
SEEING = dict(
    image_token_index=VOCAB,
    text_config=SIZES | dict(num_hidden_layers=4, cross_attention_layers=[1, 3], rope_parameters=LLAMA3, pad_token_id=0),
    vision_config=dict(
        hidden_size=32, num_hidden_layers=4, num_global_layers=2, attention_heads=2, intermediate_size=48, vision_output_dim=96, image_size=28, patch_size=7, max_num_tiles=4, intermediate_layers_indices=[1, 3],
    ),
)
SEES = {"Mllama images"}
SIDES = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1)]
# Every so many rows of a picture are recorded.
SEEN_STEP = 7
MODELS = {
    "Mllama": SIZES | HEADS | dict(num_hidden_layers=4, cross_attention_layers=[1, 3], rope_parameters=LLAMA3),
    "Llama": SIZES,
    "Llama 2": SIZES | dict(rope_parameters=LLAMA3, tie_word_embeddings=True),
    "Llama 3": SIZES | dict(rope_parameters=YARN, attention_bias=True),
    "Mistral": SIZES | dict(sliding_window=None),
    "Mixtral": SIZES | EXPERTS | dict(sliding_window=None),
    "Qwen2": SIZES,
    "Qwen3": SIZES | HEADS,
    "Qwen2Moe": SIZES | EXPERTS | dict(shared_expert_intermediate_size=80, decoder_sparse_step=1),
    "Qwen3Moe": SIZES | EXPERTS | HEADS | dict(norm_topk_prob=True),
    "Gemma": SIZES | HEADS | dict(tie_word_embeddings=True),
    "Gemma2": SIZES | HEADS | dict(tie_word_embeddings=True, query_pre_attn_scalar=16, sliding_window=8),
    "Gemma3": SIZES | HEADS | dict(tie_word_embeddings=True, query_pre_attn_scalar=16, sliding_window=8, num_hidden_layers=7),
    "Gemma4": GEMMA4 | dict(vocab_size=VOCAB + 60, attention_k_eq_v=True, num_global_key_value_heads=1, final_logit_softcapping=20.0),
    "Gemma4 2": GEMMA4 | dict(hidden_size_per_layer_input=8, num_kv_shared_layers=2, use_double_wide_mlp=True),
    "Gemma4 3": GEMMA4 | dict(enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=48),
    "Gemma3n": GEMMA4 | WIDE | dict(num_kv_shared_layers=0, laurel_rank=8, activation_sparsity_pattern=[0.95] * 2, vocab_size_per_layer_input=300),
    "Phi": SIZES | dict(num_key_value_heads=4, partial_rotary_factor=0.5),
    "Phi3": SIZES,
    "Olmo": SIZES | dict(clip_qkv=2.0),
    "Olmo2": SIZES,
    "Olmo3": SIZES | dict(sliding_window=8, num_hidden_layers=4),
    "Olmoe": SIZES | EXPERTS,
    "Starcoder2": SIZES | dict(use_bias=True, sliding_window=None),
    "StableLm": SIZES | dict(partial_rotary_factor=0.25, use_qkv_bias=True),
    "GPT2": GPT2,
    "GPTNeoX": SIZES | dict(num_key_value_heads=4, rotary_pct=0.25),
    "GPTNeoX 2": SIZES | dict(num_key_value_heads=4, rotary_pct=0.25, hidden_act="gelu_fast", use_parallel_residual=False),
    "GPTBigCode": GPT2 | dict(multi_query=True),
    "Bloom": dict(hidden_size=64, n_layer=3, n_head=4, vocab_size=VOCAB, bos_token_id=0, eos_token_id=1),
    "Mpt": dict(d_model=64, n_layers=3, n_heads=4, max_seq_len=256, vocab_size=VOCAB, expansion_ratio=4),
    "Falcon": SIZES | dict(multi_query=True, parallel_attn=True, new_decoder_architecture=False, bias=False, alibi=False),
    "Falcon 2": SIZES | dict(num_kv_heads=2, new_decoder_architecture=True, bias=False, alibi=False),
    "Cohere": SIZES | dict(logit_scale=0.25, tie_word_embeddings=True),
    "Cohere2": SIZES | HEADS | dict(logit_scale=0.25, sliding_window=8, num_hidden_layers=4, tie_word_embeddings=True),
    "Granite": SIZES | dict(embedding_multiplier=12.0, attention_multiplier=0.125, residual_multiplier=0.22, logits_scaling=8.0),
    "GraniteMoe": SIZES | EXPERTS | dict(embedding_multiplier=12.0, attention_multiplier=0.125, residual_multiplier=0.22),
    "Glm4": SIZES | HEADS | dict(partial_rotary_factor=0.5, attention_bias=True),
    "Glm": SIZES | HEADS | dict(partial_rotary_factor=0.5, attention_bias=True),
    "Glm4Moe": SIZES | EXPERTS | HEADS | dict(n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1, use_qk_norm=True, attention_bias=True, partial_rotary_factor=0.5),
    "Exaone4": SIZES | HEADS | dict(sliding_window=None, layer_types=["full_attention"] * 3),
    "Ernie4_5": SIZES | HEADS,
    "Ernie4_5_Moe": SIZES | HEADS | dict(moe_num_experts=6, moe_k=2, moe_num_shared_experts=1, moe_intermediate_size=48, moe_layer_start_index=1),
    "HunYuanDenseV1": SIZES | HEADS,
    "HunYuanMoEV1": SIZES | HEADS | dict(num_experts=6, moe_topk=2),
    "SeedOss": SIZES | HEADS | dict(attention_bias=True),
    "SmolLM3": SIZES | dict(num_hidden_layers=4),
    "Nemotron": SIZES | dict(partial_rotary_factor=0.5),
    "Arcee": SIZES | HEADS,
    "Lfm2": SIZES | dict(layer_types=["conv", "full_attention", "conv"], block_auto_adjust_ff_dim=False, conv_L_cache=3),
    "Lfm2Moe": SIZES | EXPERTS | dict(layer_types=["conv", "full_attention", "conv"], num_dense_layers=1, conv_L_cache=3),
    "DeepseekV2": SIZES | EXPERTS | LATENT | dict(num_key_value_heads=4, topk_method="greedy"),
    "DeepseekV3": SIZES | EXPERTS | LATENT | dict(num_key_value_heads=4),
    "DeepseekV3 2": SIZES | EXPERTS | LATENT | dict(num_key_value_heads=4, rope_parameters=YARN | {"mscale": 0.7, "mscale_all_dim": 0.7}),
    "Dots1": SIZES | EXPERTS | HEADS | dict(n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1, sliding_window=None),
    "MiniMaxM2": SIZES | EXPERTS | HEADS,
    "Mamba": dict(hidden_size=64, num_hidden_layers=3, state_size=8, vocab_size=VOCAB, bos_token_id=0, eos_token_id=1),
    "FalconMamba": dict(hidden_size=64, num_hidden_layers=3, state_size=8, vocab_size=VOCAB, bos_token_id=0, eos_token_id=1),
    "Mamba2": dict(hidden_size=64, num_hidden_layers=3, state_size=16, head_dim=16, num_heads=8, n_groups=2, vocab_size=VOCAB, bos_token_id=0, eos_token_id=1),
    "ExaoneMoe": SIZES | EXPERTS | HEADS | dict(num_hidden_layers=4, sliding_window=8, n_group=1, topk_group=1, first_k_dense_replace=1, num_shared_experts=1),
    "Qwen3_5": SIZES | DELTA | HEADS,
    "Qwen3_5Moe": SIZES | DELTA | EXPERTS | HEADS | dict(shared_expert_intermediate_size=48),
    "Qwen3Next": SIZES | DELTA | EXPERTS | HEADS | dict(shared_expert_intermediate_size=48),
    "DeepseekV32": SIZES | EXPERTS | LATENT | INDEXER | dict(num_key_value_heads=4, rope_parameters=YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}),
    "GlmMoeDsa": SIZES | EXPERTS | LATENT | INDEXER | dict(num_key_value_heads=4, indexer_types=["full", "shared", "full"]),
    "DeepseekV32 2": SIZES | EXPERTS | LATENT | INDEXER | dict(num_key_value_heads=4, index_n_heads=16, index_topk=7),
    "GlmMoeDsa 2": SIZES | EXPERTS | LATENT | INDEXER | dict(num_key_value_heads=4, index_n_heads=16, index_topk=7, indexer_types=["full", "shared", "full"]),
    "Apertus": SIZES | dict(rope_parameters=LLAMA3),
    "GptOss": SIZES | EXPERTS | HEADS | dict(sliding_window=8, intermediate_size=64, num_hidden_layers=4),
    "MiniMaxM3VL": SIZES | EXPERTS | HEADS | dict(
        intermediate_size=48, dense_intermediate_size=96, shared_intermediate_size=48, rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}, index_n_heads=2, index_head_dim=16, index_block_size=8, index_topk_blocks=16,
        layer_types=["full_attention"] + ["minimax_m3_sparse"] * 2, mlp_layer_types=["dense", "sparse", "sparse"],
    ),
    "MiniMaxM3VL 2": SIZES | EXPERTS | HEADS | dict(
        intermediate_size=48, dense_intermediate_size=96, shared_intermediate_size=48, rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}, index_n_heads=2, index_head_dim=16, index_block_size=4, index_topk_blocks=3, index_local_blocks=1,
        layer_types=["full_attention"] + ["minimax_m3_sparse"] * 2, mlp_layer_types=["dense", "sparse", "sparse"],
    ),
    "Glm4MoeLite": SIZES | EXPERTS | LATENT | dict(num_key_value_heads=4),
    "Ministral3": SIZES | HEADS | dict(rope_parameters=YARN | {"original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0}),
    "SolarOpen": SIZES | EXPERTS | HEADS | dict(n_shared_experts=1, n_group=1, topk_group=1),
    "Jais2": SIZES | HEADS,
    "HYV4": SIZES | EXPERTS | LATENT | INDEXER | dict(num_key_value_heads=4, index_n_heads=16, index_topk=7, indexer_types=["full", "shared", "full"], hc_mult=4, hc_eps=0.01, hc_magnitude=1.5, swiglu_limit=0.5),
    "HYV4 2": SIZES | EXPERTS | LATENT | INDEXER | dict(num_key_value_heads=4, hc_mult=3, n_shared_experts=2, rope_parameters=YARN),
    "DeepseekV4": DEEPSEEK4 | dict(layer_types=["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"], compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 8}, num_hash_layers=1, rope_scaling=YARN, compress_rope_theta=500.0),
    "DeepseekV4 2": DEEPSEEK4 | dict(layer_types=["heavily_compressed_attention", "compressed_sparse_attention", "compressed_sparse_attention"], num_hash_layers=2, hc_sinkhorn_iters=1),
    "HYV3": SIZES | EXPERTS | HEADS | dict(first_k_dense_replace=1, num_shared_experts=1),
    "GraniteMoeHybrid": SIZES | EXPERTS | dict(layer_types=["mamba", "attention", "mamba"], shared_intermediate_size=48, mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=16, embedding_multiplier=12.0, attention_multiplier=0.125, residual_multiplier=0.22, logits_scaling=8.0),
    "NemotronH 2": SIZES | HEADS | UNBOUNDED | dict(layers_block_type=["linear_attention", "full_attention", "mlp", "linear_attention"], mamba_num_heads=8, mamba_head_dim=16, n_groups=2, ssm_state_size=16),
    "GraniteMoeHybrid 2": SIZES | dict(num_local_experts=0, position_embedding_type="rope", layer_types=["attention"] * 3, shared_intermediate_size=96, mamba_n_heads=8, mamba_d_head=16),
    "NemotronH": SIZES | EXPERTS | HEADS | UNBOUNDED | dict(layers_block_type=["linear_attention", "full_attention", "moe", "linear_attention"], moe_shared_expert_intermediate_size=48, routed_scaling_factor=2.5, mamba_num_heads=8, mamba_head_dim=16, n_groups=2, ssm_state_size=16),
    "Bert": SIZES | dict(num_key_value_heads=4, type_vocab_size=2),
    "Roberta": SIZES | dict(num_key_value_heads=4, type_vocab_size=1, pad_token_id=1),
    "XLMRoberta": SIZES | dict(num_key_value_heads=4, type_vocab_size=1, pad_token_id=1),
    "DistilBert": dict(dim=64, n_layers=3, n_heads=4, hidden_dim=96, vocab_size=VOCAB, max_position_embeddings=256),
    "NomicBert": SIZES | dict(num_key_value_heads=4, pad_token_id=0, type_vocab_size=2),
    "EuroBert": SIZES,
    "JinaEmbeddingsV3": SIZES | dict(num_key_value_heads=4, type_vocab_size=1),
    "T5Encoder": T5,
    "T5Encoder 2": T5 | dict(feed_forward_proj="gated-gelu", num_layers=2, d_kv=24),
    "UMT5Encoder": T5 | dict(feed_forward_proj="gated-gelu"),
    "MT5Encoder": T5 | dict(feed_forward_proj="gated-gelu"),
    "T5": T5 | dict(decoder_start_token_id=0),
    "T5 2": T5 | dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_layers=2, num_decoder_layers=3, d_kv=24, decoder_start_token_id=2),
    "MT5": T5 | dict(feed_forward_proj="gated-gelu", decoder_start_token_id=0),
    "UMT5": T5 | dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0),
    "Whisper": WHISPER,
    "Mllama images": SEEING,
    "ModernBert": SIZES | dict(global_attn_every_n_layers=3, local_attention=8, num_hidden_layers=4, cls_token_id=0, sep_token_id=1),
}
# Width and height of pictures: 1, 2, 4, 4, 4 and 3 tiles, of which one is much reduced.
PICTURES = [(20, 25), (3, 40), (30, 110), (70, 65), (310, 290), (60, 25)]
# Other architectures look both ways: the class whose layers they have, and what else their configurations say.
MASK = VOCAB - 1
BOTH_WAYS = {
    "Dream": ("Qwen2", SIZES, dict(architectures=["DreamModel"])),
    "RND1": ("Qwen3Moe", SIZES | EXPERTS | HEADS | dict(norm_topk_prob=True), dict(architectures=["RND1"])),
    "LLaDAMoE": ("Qwen3Moe", SIZES | EXPERTS | HEADS | dict(norm_topk_prob=False), dict(architectures=["LLaDAMoEModelLM"], expert_intermediate_size=48, moe_intermediate_size=None, intermediate_size=None)),
    "LLaDA": ("Llama", SIZES | dict(num_key_value_heads=4), dict(
        architectures=["LLaDAModelLM"], d_model=64, n_heads=4, n_kv_heads=4, n_layers=3, mlp_hidden_size=96, max_sequence_length=256, rope_theta=10000.0, activation_type="silu", weight_tying=False,
        **dict.fromkeys(["hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "intermediate_size", "max_position_embeddings", "hidden_act", "head_dim", "rope_parameters"]),
    )),
}
LLADA_NAMES = {
    "model.embed_tokens": "model.transformer.wte", "model.norm": "model.transformer.ln_f", "lm_head": "model.transformer.ff_out", "model.layers.": "model.transformer.blocks.",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ff_norm", "self_attn.o_proj": "attn_out", "self_attn.": "", "mlp.gate_proj": "ff_proj", "mlp.down_proj": "ff_out", "mlp.": "",
}
ENCODERS = {"Bert", "Roberta", "XLMRoberta", "DistilBert", "ModernBert", "NomicBert", "EuroBert", "JinaEmbeddingsV3", "T5Encoder", "UMT5Encoder", "MT5Encoder"}
# their encoders read a prompt, which is longer than the distances that have a bucket each
READERS = {"T5", "MT5", "UMT5"}
# a space, other ids than those of control tokens, and the end
READ = [3] + [4 + (5 * i + 1) % (VOCAB - 4) for i in range(138)] + [1]
# rerankers, and whether their tokens have types
RANKERS = {
    "Bert ranker": ("Bert", {}),
    "XLMRoberta ranker": ("XLMRoberta", {}),
    "ModernBert ranker": ("ModernBert", {}),
    "ModernBert mean ranker": ("ModernBert", dict(classifier_pooling="mean")),
    "Qwen3 ranker": ("Qwen3", dict(pad_token_id=0)),
}


def picture(width, height):
    values = weights("picture", (height, width, 3), 0.0, 1.0).astype(numpy.float64)
    return numpy.minimum(numpy.floor((values + 1) * 128), 255).astype(numpy.uint8)


def seen(model, to):
    """Records what the encoder makes of pictures, and returns what the model takes for the last one."""
    # transformers 5.24 keeps the outputs of these layers; Meta's code and earlier transformers keep their inputs
    eyes = model.model.vision_model
    eyes.intermediate_layers_indices = [layer - 1 for layer in eyes.config.intermediate_layers_indices]
    side = eyes.config.image_size
    colours = dict(image_mean=[0.48145466, 0.4578275, 0.40821073], image_std=[0.26862954, 0.26130258, 0.27577711])
    prepare = MllamaImageProcessorPil(size={"height": side, "width": side}, max_image_tiles=4, **colours)
    pictures = []
    for width, height in PICTURES:
        inputs = prepare([[PIL.Image.fromarray(picture(width, height))]], return_tensors="pt")
        tiles = inputs.pop("num_tiles")[0][0]
        with torch.no_grad():
            rows = model.model.multi_modal_projector(eyes(**inputs).last_hidden_state)
        rows = rows.reshape(-1, rows.shape[-1])[: tiles * eyes.num_patches]
        # the canvas of an arrangement (down, across), as planes of bytes
        down, across = SIDES[int(inputs["aspect_ratio_ids"]) - 1]
        values = inputs["pixel_values"][0, 0, :tiles].numpy().reshape(down, across, 3, side, side)
        values = values.transpose(2, 0, 3, 1, 4).reshape(3, down * side, across * side)
        mean, std = (numpy.array(each).reshape(3, 1, 1) for each in colours.values())
        pixels = numpy.rint((values * std + mean) * 255).astype(numpy.uint8)
        made = rows[::SEEN_STEP].numpy().astype("<f4")
        pictures.append(dict(width=width, height=height, canvas=[across * side, down * side], pixels=zlib.crc32(pixels.tobytes()), rows=base64.b64encode(made.tobytes()).decode()))
    json.dump(pictures, open(os.path.join(to, "pictures.json"), "w"))
    mask = torch.zeros(1, LENGTH, 1, 4)
    mask[..., :tiles] = 1
    return dict(inputs) | {"cross_attention_mask": mask}


def weights(name, shape, middle, width):
    """Values around `middle`, from a hash of the name and the place."""
    x = numpy.arange(math.prod(shape), dtype=numpy.uint64) + numpy.uint64(zlib.crc32(name.encode()))
    x &= numpy.uint64(0xFFFFFFFF)
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        x ^= x >> numpy.uint64(16 if factor == 0x85EBCA6B else 13)
        x = (x * numpy.uint64(factor)) & numpy.uint64(0xFFFFFFFF)
    x ^= x >> numpy.uint64(16)
    if name.endswith(TABLE):  # numbers below `width`
        return (x % numpy.uint64(width)).astype(numpy.int64).reshape(shape)
    values = middle + width * (x.astype(numpy.float64) / 2**31 - 1)
    return values.astype(numpy.float16).astype(numpy.float32).reshape(shape)


def published(name, part):
    """transformers saves some tensors of Hunyuan 4 and DeepSeek V4 under names that differ from the published ones."""
    if name.startswith("DeepseekV4"):
        part = part.removeprefix("model.").replace("embed_tokens", "embed").replace("hc_head.hc_", "hc_head_")
        return part.replace(".attn.norm.", ".attn.kv_norm.")
    part = part.replace("hc_pre.hc_head.", "hc_head.").replace("mlp.linear_gate", "mlp.gate_proj")
    part = part.replace("shared_experts.linear_gate", "shared_experts.gate_proj")
    return re.sub(r"hc_pre\.(hc_attn_layer|hc_mlp_layer)\.", r"\1.hc_pre.", part)


def build(name, to):
    """Saves a model, replaces its weights, and loads it again: names in the file may differ from those in memory."""
    base = name.split(" ")[0]
    if base in BOTH_WAYS:
        base, sizes, more = BOTH_WAYS[base]
        MODELS[name] = sizes
    if name in RANKERS:
        base, more = RANKERS[name]
        MODELS[name] = MODELS[base] | dict(num_labels=1) | more
    ending = "ForSequenceClassification" if name in RANKERS else "Model" if base in ENCODERS else "LMHeadModel" if base == "GPT2" else "ForConditionalGeneration" if base == "Whisper" or base in READERS or name in SEES else "ForCausalLM"
    kind = getattr(transformers, base + ending)
    config = kind.config_class(**MODELS[name])
    config._attn_implementation = "eager"
    torch.manual_seed(0)  # some kinds draw what their weights lie around
    kind(config).float().save_pretrained(to)
    path = os.path.join(to, "model.safetensors")
    tensors = {}
    saved = load_file(path)
    if base in READERS and not getattr(config, "scale_decoder_outputs", False):
        saved["lm_head.weight"] = saved["shared.weight"]  # transformers saves equal matrices once, published models have two
    for part, old in saved.items():
        part = published(base, part)
        # small enough for scores to differ, large enough for them to matter
        is_matrix = old.ndim > 1 and not part.endswith(("A_log", "conv1d.weight"))
        middle = 0.0 if is_matrix else round(float(old.float().mean()), 1)
        gain = 5.0 if ".mixer." in part else 2.0  # a recurrence that matters beside the skip connection
        width = 0.3
        if is_matrix:
            fan = old[0].numel() if "encoder.conv" in part or "patch_embedding" in part else old.shape[-1]
            width = round(gain / fan**0.5, 4)
        if part.endswith("act_fn.eps"):  # a limit just below 0
            middle, width = -1e-6, 0.0
        if part.endswith(TABLE):
            width = config.n_routed_experts
        tensors[part] = [list(old.shape), middle, width]
    names = {part: named(name, part) for part in tensors}
    values = {part: torch.from_numpy(weights(names[part], *each)) for part, each in tensors.items()}
    save_file(values, path, {"format": "pt"})
    model = kind.from_pretrained(to, attn_implementation="eager", dtype=torch.float32).eval()
    if name in BOTH_WAYS:
        save_file({names[part]: value for part, value in values.items()}, path, {"format": "pt"})
        place = os.path.join(to, "config.json")
        config = json.load(open(place)) | dict(mask_token_id=MASK) | more
        json.dump({key: value for key, value in config.items() if value is not None}, open(place, "w"))
    if name == "T5 2":  # as published: transformers 5 saves these keys otherwise
        place = os.path.join(to, "config.json")
        config = json.load(open(place)) | dict(tie_word_embeddings=False)
        del config["scale_decoder_outputs"]
        json.dump(config, open(place, "w"))
    return model, {names[part]: each for part, each in tensors.items()}


def named(name, part):
    """The name of a tensor as people publish it."""
    if name == "LLaDA":
        for old, new in LLADA_NAMES.items():
            part = part.replace(old, new)
    return part


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"])
    made.train_from_iterator(TEXT * 20, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")


def text_bpe():
    """Gemma 4's kind: merges of text, bytes for what has no piece."""
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.normalizer = normalizers.Replace(" ", "▁")
    marks = ["<pad>", "<eos>", "<bos>", "<unk>", "<|channel>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    made.train_from_iterator(TEXT * 20, trainers.BpeTrainer(vocab_size=VOCAB + 60, special_tokens=marks))
    vocabulary = json.loads(made.to_str())
    vocabulary["added_tokens"] = [each for each in vocabulary["added_tokens"] if not each["content"].startswith("<0x")]
    vocabulary["decoder"] = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    made = Tokenizer.from_str(json.dumps(vocabulary))
    made.post_processor = processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", 2)])
    names = dict(bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", pad_token="<pad>")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


def unigram(folder, marks, single, **names):
    """The kind of XLM-RoBERTa and T5: SentencePiece's pieces and its map of characters."""
    prefix = os.path.join(folder, "pieces")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT * 20), model_prefix=prefix, vocab_size=100, model_type="unigram",
        normalization_rule_name="nmt_nfkc", character_coverage=1.0, minloglevel=2, hard_vocab_limit=False,
    )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(open(prefix + ".model", "rb").read())
    scored = [(mark, 0.0) for mark in marks] + [(each.piece, each.score) for each in proto.pieces[3:]]
    made = Tokenizer(models.Unigram(scored, unk_id=marks.index("<unk>")))
    made.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.decoder = decoders.Metaspace()
    ends = [(mark, marks.index(mark)) for mark in ("<s>", "</s>") if mark in marks]
    made.post_processor = processors.TemplateProcessing(single=single, pair=single + " $B </s>", special_tokens=ends)
    made.add_special_tokens(marks)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", unk_token="<unk>", pad_token="<pad>", **names)


def main(folder, *names):
    byte_level, merged = tokenizer(), text_bpe()
    roberta = unigram(folder, ["<s>", "<pad>", "</s>", "<unk>"], "<s> $A </s>", bos_token="<s>", cls_token="<s>", sep_token="</s>")
    t5 = unigram(folder, ["<pad>", "</s>", "<unk>"], "$A </s>")
    for name in names or [*MODELS, *BOTH_WAYS, *RANKERS]:
        to = os.path.join(folder, name.replace(" ", "-"))
        try:
            model, tensors = build(name, to)
            ids = [(7 * i + 3) % VOCAB for i in range(LENGTHS.get(name, LENGTH))]
            is_encoder = name.split(" ")[0] in ENCODERS and name not in RANKERS
            second = LENGTH // 2 if name in RANKERS else None
            types = {"token_type_ids": torch.tensor([[int(i >= second) for i in range(LENGTH)]])} if name == "Bert ranker" else {}
            with torch.no_grad():
                media = {"input_features": torch.from_numpy(weights("features", (1, 80, 3000), 0.0, 1.0))} if name == "Whisper" else {}
                if name in SEES:
                    media = seen(model, to)
                    ids[0] = VOCAB  # the token of a picture
                reads = name.split(" ")[0] in READERS
                said = {"decoder_input_ids" if name == "Whisper" or reads else "input_ids": torch.tensor([ids])}
                if reads:
                    media = {"input_ids": torch.tensor([READ])}
                out = model(**said, **media, **({} if is_encoder or name in RANKERS else {"use_cache": False}), **types, **({"attention_mask": torch.zeros(1, 1, LENGTH, LENGTH)} if name in BOTH_WAYS else {}))
            rows = out.last_hidden_state if is_encoder else out.logits
            words = {"XLMRoberta": roberta, "T5Encoder": t5, "Gemma4": merged}.get(name, byte_level)
            words.save_pretrained(to)
            rows[0].numpy().astype("<f4").tofile(os.path.join(to, "original.f32"))
            if name == "Whisper":
                out.encoder_last_hidden_state[0].numpy().astype("<f4").tofile(os.path.join(to, "sound.f32"))
            texts = [[text, words(text).input_ids] for text in TEXTS] if name in ("Llama", "XLMRoberta", "T5Encoder", "Gemma4") else []
            answer = model.generate(**media, do_sample=False, max_new_tokens=24, use_cache=False)[0].tolist() if reads else []
            reading = {"read": READ, "answer": answer} if reads else {}
            made = {**reading, "transformers": transformers.__version__, "ids": ids, "tensors": tensors, "texts": texts, "second": second}
            json.dump(made, open(os.path.join(to, "original.json"), "w"))
            print(name, "made", flush=True)
        except Exception as error:
            print(name, "left out:", type(error).__name__, str(error)[:300].replace("\n", " "), flush=True)


main(*sys.argv[1:])
