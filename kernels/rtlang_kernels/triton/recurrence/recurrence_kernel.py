"""Kernels of recurrent layers: a program owns some channels, or some value lanes of a head, of one row and takes its tokens in order.

The state stays in registers between tokens and is stored at marks in passing. No sum crosses programs, no constant depends on a step, and
multiplications and additions are not fused by the compiler: a token has the same bits however its sequence is divided into rows. Kernels
that take a prompt in chunks, with matrix products inside a chunk, cannot have this property: a row may continue a state that was kept
anywhere, and the sums of its first chunk would begin there.

A row may write its own source, which its program has then read (a barrier orders the threads). No other row reads a slot that is written
(`contract.state_plan`). Rows without tokens, and marks with a negative slot, are skipped: they pad the plan of a captured graph.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit


@jit
def _inputs(
    x: tl.tensor,
    states: tl.tensor,
    places: tl.tensor,
    first: tl.tensor,
    source: tl.tensor,
    channels: tl.tensor,
    is_channel: tl.tensor,
    end: tl.tensor,
    x_stride: tl.tensor,
    state_stride: tl.tensor,
    WIDTH: tl.constexpr,
) -> tl.tensor:
    """Inputs of a row at `places` [N], counted from its first token; its source holds negative ones: float32 [N, BLOCK_C].

    Zeros from `end` on, and at negative places of a row without source.
    """
    is_new = (places >= 0) & (places < end)
    new = tl.load(
        x + (first + places)[:, None] * x_stride + channels[None, :],
        mask=is_new[:, None] & is_channel[None, :],
        other=0.0,
    )
    is_old = (places < 0) & (places >= tl.where(source >= 0, 1 - WIDTH, 0))
    old = tl.load(
        states + source * state_stride + channels[None, :] * (WIDTH - 1) + (places + (WIDTH - 1))[:, None],
        mask=is_old[:, None] & is_channel[None, :],
        other=0.0,
    )
    return tl.where(is_new[:, None], new.to(tl.float32), old.to(tl.float32))


@jit
def _keep_inputs(
    x: tl.tensor,
    states: tl.tensor,
    slot: tl.tensor,
    first: tl.tensor,
    source: tl.tensor,
    channels: tl.tensor,
    is_channel: tl.tensor,
    end: tl.tensor,
    x_stride: tl.tensor,
    state_stride: tl.tensor,
    WIDTH: tl.constexpr,
    BLOCK_W: tl.constexpr,
) -> None:
    """Store the last WIDTH - 1 inputs before `end`, oldest first."""
    column = tl.arange(0, BLOCK_W)
    places = end - (WIDTH - 1) + column
    kept = _inputs(x, states, places, first, source, channels, is_channel, end, x_stride, state_stride, WIDTH)
    tl.debug_barrier()  # other threads may still read what this one overwrites
    is_kept = column < tl.where(slot >= 0, WIDTH - 1, 0)
    target = states + slot * state_stride + channels[None, :] * (WIDTH - 1) + column[:, None]
    tl.store(target, kept.to(states.dtype.element_ty), mask=is_kept[:, None] & is_channel[None, :])


@jit
def causal_conv(
    x: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    states: tl.tensor,
    out: tl.tensor,
    cu_seqlens: tl.tensor,
    sources: tl.tensor,
    cu_marks: tl.tensor,
    mark_ends: tl.tensor,
    mark_slots: tl.tensor,
    num_channels: tl.tensor,
    x_stride: tl.tensor,
    state_stride: tl.tensor,
    WIDTH: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_SILU: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_W: tl.constexpr,
) -> None:
    """Convolve BLOCK_C channels of one row, BLOCK_T tokens at a time. Grid: (blocks of channels, rows)."""
    row = tl.program_id(1)
    channels = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    is_channel = channels < num_channels
    first, last = tl.load(cu_seqlens + row).to(tl.int64), tl.load(cu_seqlens + row + 1).to(tl.int64)
    source = tl.load(sources + row).to(tl.int64)
    length = last - first
    for start in range(0, length, BLOCK_T):
        places = start + tl.arange(0, BLOCK_T)
        total = tl.zeros([BLOCK_T, BLOCK_C], tl.float32)
        for tap in tl.static_range(WIDTH):
            before = places - (WIDTH - 1) + tap
            inputs = _inputs(
                x, states, before, first, source, channels, is_channel, length, x_stride, state_stride, WIDTH
            )
            factor = tl.load(weight + channels * WIDTH + tap, mask=is_channel, other=0.0).to(tl.float32)
            total += inputs * factor[None, :]
        if HAS_BIAS:
            total += tl.load(bias + channels, mask=is_channel, other=0.0).to(tl.float32)[None, :]
        if HAS_SILU:
            total = total / (1.0 + tl.exp(-total))
        target = out + (first + places)[:, None] * num_channels + channels[None, :]
        is_element = (places < length)[:, None] & is_channel[None, :]
        tl.store(target, total.to(out.dtype.element_ty), mask=is_element)
    own_end = 0  # the mark in the source comes last: inputs of the others may lie there
    for mark in range(tl.load(cu_marks + row), tl.load(cu_marks + row + 1)):
        end, slot = tl.load(mark_ends + mark), tl.load(mark_slots + mark).to(tl.int64)
        if slot == source:
            own_end = end
        else:
            _keep_inputs(
                x, states, slot, first, source, channels, is_channel, end, x_stride, state_stride, WIDTH, BLOCK_W
            )
    if own_end > 0:
        _keep_inputs(
            x, states, source, first, source, channels, is_channel, own_end, x_stride, state_stride, WIDTH, BLOCK_W
        )


@jit
def _vector(address: tl.tensor, lanes: tl.tensor, SIZE: tl.constexpr, is_token: tl.tensor) -> tl.tensor:
    """Load SIZE adjacent elements of one token, or zeros."""
    return tl.load(address + lanes, mask=lanes < tl.where(is_token, SIZE, 0), other=0.0)


@jit
def gated_recurrence(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    log_decay: tl.tensor,
    beta: tl.tensor,
    states: tl.tensor,
    out: tl.tensor,
    cu_seqlens: tl.tensor,
    sources: tl.tensor,
    cu_marks: tl.tensor,
    mark_ends: tl.tensor,
    mark_slots: tl.tensor,
    scale: tl.tensor,
    norm_eps: tl.tensor,
    q_stride: tl.tensor,
    q_head_stride: tl.tensor,
    k_stride: tl.tensor,
    k_head_stride: tl.tensor,
    v_stride: tl.tensor,
    v_head_stride: tl.tensor,
    decay_stride: tl.tensor,
    decay_head_stride: tl.tensor,
    beta_stride: tl.tensor,
    beta_head_stride: tl.tensor,
    state_stride: tl.tensor,
    NUM_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    K_DIM: tl.constexpr,
    V_DIM: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_V: tl.constexpr,
    IS_DELTA: tl.constexpr,
    HAS_BETA: tl.constexpr,
    HAS_NORM: tl.constexpr,
    HAS_KEY_DECAY: tl.constexpr,
) -> None:
    """Advance BLOCK_V lanes of the state of one value head of one row. Grid: (heads * blocks of lanes, rows).

    The vectors of a token are loaded while its predecessor is computed.
    """
    num_blocks: tl.constexpr = (V_DIM + BLOCK_V - 1) // BLOCK_V
    head, row = tl.program_id(0) // num_blocks, tl.program_id(1)
    keys = tl.arange(0, BLOCK_K)
    lanes = (tl.program_id(0) % num_blocks) * BLOCK_V + tl.arange(0, BLOCK_V)
    first, last = tl.load(cu_seqlens + row).to(tl.int64), tl.load(cu_seqlens + row + 1).to(tl.int64)
    source = tl.load(sources + row).to(tl.int64)
    place = head * (K_DIM * V_DIM) + keys[:, None] * V_DIM + lanes[None, :]
    is_source = (keys < tl.where(source >= 0, K_DIM, 0))[:, None] & (lanes < V_DIM)[None, :]
    state = tl.load(states + source * state_stride + place, mask=is_source, other=0.0)
    tl.debug_barrier()
    mark, end_of_marks = tl.load(cu_marks + row), tl.load(cu_marks + row + 1)
    marked = first + tl.load(mark_ends + mark, mask=mark < end_of_marks, other=0)
    q += head // GROUP * q_head_stride
    k += head // GROUP * k_head_stride
    v += head * v_head_stride
    log_decay += head * decay_head_stride
    beta += head * beta_head_stride
    out += head * V_DIM
    is_token = first < last
    query = _vector(q + first * q_stride, keys, K_DIM, is_token)
    key = _vector(k + first * k_stride, keys, K_DIM, is_token)
    value = _vector(v + first * v_stride, lanes, V_DIM, is_token)
    if HAS_KEY_DECAY:
        decay = _vector(log_decay + first * decay_stride, keys, K_DIM, is_token)
    else:
        decay = tl.load(log_decay + first * decay_stride, mask=is_token, other=0.0)
    if HAS_BETA:
        strength = tl.load(beta + first * beta_stride, mask=is_token, other=0.0)
    for token in range(first, last):
        q_now, k_now, update = query.to(tl.float32), key.to(tl.float32), value.to(tl.float32)
        factor = tl.exp(decay.to(tl.float32))
        if HAS_BETA:
            strength_now = strength.to(tl.float32)
        after = token + 1
        is_token = after < last
        query = _vector(q + after * q_stride, keys, K_DIM, is_token)
        key = _vector(k + after * k_stride, keys, K_DIM, is_token)
        value = _vector(v + after * v_stride, lanes, V_DIM, is_token)
        if HAS_KEY_DECAY:
            decay = _vector(log_decay + after * decay_stride, keys, K_DIM, is_token)
        else:
            decay = tl.load(log_decay + after * decay_stride, mask=is_token, other=0.0)
        if HAS_BETA:
            strength = tl.load(beta + after * beta_stride, mask=is_token, other=0.0)
        if HAS_NORM:
            q_now *= tl.rsqrt(tl.sum(q_now * q_now) + norm_eps)
            k_now *= tl.rsqrt(tl.sum(k_now * k_now) + norm_eps)
        if HAS_KEY_DECAY:
            state *= factor[:, None]
        else:
            state *= factor
        if IS_DELTA:
            update -= tl.sum(state * k_now[:, None], 0)
        if HAS_BETA:
            update *= strength_now
        state = tl.fma(k_now[:, None], update[None, :], state)
        result = tl.sum(state * (q_now * scale)[:, None], 0)
        tl.store(out + token * (NUM_HEADS * V_DIM) + lanes, result.to(out.dtype.element_ty), mask=lanes < V_DIM)
        if after == marked:
            slot = tl.load(mark_slots + mark).to(tl.int64)
            is_kept = (keys < tl.where(slot >= 0, K_DIM, 0))[:, None] & (lanes < V_DIM)[None, :]
            tl.store(states + slot * state_stride + place, state, mask=is_kept)
            mark += 1
            marked = first + tl.load(mark_ends + mark, mask=mark < end_of_marks, other=0)


@jit
def selective_scan(
    x: tl.tensor,
    delta: tl.tensor,
    a: tl.tensor,
    b: tl.tensor,
    c: tl.tensor,
    d: tl.tensor,
    states: tl.tensor,
    out: tl.tensor,
    cu_seqlens: tl.tensor,
    sources: tl.tensor,
    cu_marks: tl.tensor,
    mark_ends: tl.tensor,
    mark_slots: tl.tensor,
    num_channels: tl.tensor,
    x_stride: tl.tensor,
    delta_stride: tl.tensor,
    b_stride: tl.tensor,
    c_stride: tl.tensor,
    state_stride: tl.tensor,
    STATE_SIZE: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HAS_D: tl.constexpr,
) -> None:
    """Scan BLOCK_C channels of one row. Grid: (blocks of channels, rows)."""
    row = tl.program_id(1)
    channels, columns = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C), tl.arange(0, BLOCK_N)
    is_channel = channels < num_channels
    first, last = tl.load(cu_seqlens + row).to(tl.int64), tl.load(cu_seqlens + row + 1).to(tl.int64)
    source = tl.load(sources + row).to(tl.int64)
    place = channels[:, None] * STATE_SIZE + columns[None, :]
    is_source = is_channel[:, None] & (columns < tl.where(source >= 0, STATE_SIZE, 0))[None, :]
    state = tl.load(states + source * state_stride + place, mask=is_source, other=0.0)
    tl.debug_barrier()
    rate = tl.load(a + place, mask=is_channel[:, None] & (columns < STATE_SIZE)[None, :], other=0.0)
    if HAS_D:
        direct = tl.load(d + channels, mask=is_channel, other=0.0).to(tl.float32)
    mark, end_of_marks = tl.load(cu_marks + row), tl.load(cu_marks + row + 1)
    marked = first + tl.load(mark_ends + mark, mask=mark < end_of_marks, other=0)
    block_end = tl.minimum(num_channels, tl.program_id(0) * BLOCK_C + BLOCK_C)
    is_token = first < last
    limit = tl.where(is_token, block_end, 0)
    value = tl.load(x + first * x_stride + channels, mask=channels < limit, other=0.0)
    step = tl.load(delta + first * delta_stride + channels, mask=channels < limit, other=0.0)
    entry = _vector(b + first * b_stride, columns, STATE_SIZE, is_token)
    reading = _vector(c + first * c_stride, columns, STATE_SIZE, is_token)
    for token in range(first, last):
        x_now, step_now = value.to(tl.float32), step.to(tl.float32)
        b_now, c_now = entry.to(tl.float32), reading.to(tl.float32)
        after = token + 1
        is_token = after < last
        limit = tl.where(is_token, block_end, 0)
        value = tl.load(x + after * x_stride + channels, mask=channels < limit, other=0.0)
        step = tl.load(delta + after * delta_stride + channels, mask=channels < limit, other=0.0)
        entry = _vector(b + after * b_stride, columns, STATE_SIZE, is_token)
        reading = _vector(c + after * c_stride, columns, STATE_SIZE, is_token)
        state = tl.fma((step_now * x_now)[:, None], b_now[None, :], state * tl.exp(step_now[:, None] * rate))
        total = tl.sum(state * c_now[None, :], 1)
        if HAS_D:
            total += x_now * direct
        target = out + token * num_channels + channels
        tl.store(target, total.to(out.dtype.element_ty), mask=is_channel)
        if after == marked:
            slot = tl.load(mark_slots + mark).to(tl.int64)
            is_kept = is_channel[:, None] & (columns < tl.where(slot >= 0, STATE_SIZE, 0))[None, :]
            tl.store(states + slot * state_stride + place, state, mask=is_kept)
            mark += 1
            marked = first + tl.load(mark_ends + mark, mask=mark < end_of_marks, other=0)
