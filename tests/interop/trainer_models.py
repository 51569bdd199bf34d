"""Small models with random weights, and what a trainer's batch must do in one: a token of one segment changes nothing in another,
and the loss of a packed row is that of its segments alone. Needs torch and transformers, no GPU and no network."""
import torch
from torch.nn.functional import cross_entropy

VOCABULARY = 97
torch.set_num_threads(1)


def llama(attention="sdpa", dtype=torch.float64):
    """With weights large enough that every token matters."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=512, initializer_range=0.3, pad_token_id=0,
                         attn_implementation="sdpa" if attention == "flash_attention_2" else attention)
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).to(dtype).eval()
    if attention == "flash_attention_2":
        stand_in_for_flash_attention()
        model.config._attn_implementation = attention
    return model


def bert_model(heads="BertForMaskedLM"):
    import transformers
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                     num_attention_heads=4, max_position_embeddings=512, initializer_range=0.3,
                                     attn_implementation="sdpa")
    torch.manual_seed(0)
    return getattr(transformers, heads)(config).double().eval()


def stand_in_for_flash_attention():
    """Everything that transformers does around the kernel runs as it is (when a mask is dropped, how boundaries are found); the
    kernel, which needs a GPU, is replaced by attention sequence by sequence."""
    from transformers import modeling_flash_attention_utils as around

    def one(q, k, v, softmax_scale, causal):
        """[tokens, heads, width]"""
        groups = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q, k) * (softmax_scale or q.shape[-1] ** -0.5)
        if causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
        return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)

    def dense(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False):
        return torch.stack([one(*row, softmax_scale, causal) for row in zip(q, k, v)])

    def ragged(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=None, max_seqlen_k=None, dropout_p=0.0, softmax_scale=None,
               causal=False):
        assert torch.equal(cu_seqlens_q, cu_seqlens_k) and [cu_seqlens_q[0], cu_seqlens_q[-1]] == [0, len(q)], cu_seqlens_q
        assert max_seqlen_q >= cu_seqlens_q.diff().max()
        bounds = cu_seqlens_q.tolist()
        return torch.cat([one(q[a:b], k[a:b], v[a:b], softmax_scale, causal) for a, b in zip(bounds, bounds[1:])])

    around._lazy_imports = lambda *_, **__: (dense, ragged, None, around._pad_input, around._unpad_input)


def tokenizer(pad_id=0):
    """Words w0, w1, ... with the ids 0, 1, ..."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    words = {f"w{i}": i for i in range(VOCABULARY)}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w1")), pad_token=f"w{pad_id}",
                                   mask_token="w4", unk_token="w1", eos_token="w2")


def spans(lengths):
    """(begin, end) of each segment of a row."""
    ends = [sum(lengths[:s + 1]) for s in range(len(lengths))]
    return [(end - length, end) for end, length in zip(ends, lengths)]


def check_isolation(name, ids, lengths, logits_of, without_boundaries):
    """`logits_of(ids)`: [slots, vocabulary] of the row when it holds these ids; `without_boundaries` the same with what tells
    segments apart left out, which must be seen to leak: else this test could not fail."""
    places = spans(lengths)
    assert len(places) > 1
    with torch.no_grad():
        before, leaking_before = logits_of(ids), without_boundaries(ids)
        assert torch.isfinite(before[:places[-1][1]]).all(), name
        leaked = 0.0
        for changed, (begin, _) in enumerate(places):
            altered = list(ids)
            altered[begin] = (altered[begin] + 1) % VOCABULARY
            moved = (logits_of(altered) - before).abs().amax(-1)
            for s, (a, b) in enumerate(places):
                most = float(moved[a:b].max())
                if s == changed:
                    assert most > 1e-3, f"{name}: segment {s} does not see its own first token"
                else:
                    assert most < 1e-6, f"{name}: a token of segment {changed} moves logits of segment {s} by {most}"
            if changed == 0:
                leaked = float((without_boundaries(altered) - leaking_before).abs().amax(-1)[places[0][1]:places[-1][1]].max())
        assert leaked > 1e-3, f"{name}: nothing leaks without boundaries either, so this test shows nothing"


def sum_of_losses(logits, labels):
    """Next-token loss as a model with its own shift takes it, summed."""
    return float(cross_entropy(logits[:-1], labels[1:], ignore_index=-100, reduction="sum"))


def loss_of_segments(model, segments):
    """The same, each segment (ids, labels) on its own."""
    total = 0.0
    with torch.no_grad():
        for ids, labels in segments:
            logits = model(input_ids=torch.tensor([ids]), position_ids=torch.arange(len(ids))[None], use_cache=False).logits[0]
            total += sum_of_losses(logits, torch.tensor(labels))
    return total


def check_loss(name, packed, alone, within=1e-6):
    close = abs(packed - alone) < within * max(1.0, abs(alone))
    assert close, f"{name}: loss of the packed row {packed}, of its segments alone {alone}"
