# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "When pinning pays", zh: "多少次复制才值得锁页"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             A buffer is copied again and again. To pin it takes `pin`, once; a
#             copy takes `pageable` or `pinned`. Write
#             `fewest_copies(pin, pageable, pinned)`: from how many copies on
#             does the pinned buffer take less time in all? If never, return 0.
#           zh: >-
#             一个缓冲区要反复复制。锁页要花 `pin`，只花一次；每次复制，可分页内存要
#             `pageable`，锁页内存要 `pinned`。写
#             `fewest_copies(pin, pageable, pinned)`：至少复制几次，用锁页内存的总时间才
#             更短？如果永远不会，返回 0。
#         fails: "are wrong"
#       2:
#         title: {en: "The buffer is not free yet", zh: "缓冲区还不能再用"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             `send` copies batches through two pinned buffers. The GPU is busy,
#             so the copies begin late, and the buffers are overwritten before.
#             Repair it: write to a buffer only after the copy that reads it,
#             but do not wait for the other one. Use an event for each.
#           zh: >-
#             `send` 借助两个锁页缓冲区，把一批批数据复制到 GPU。GPU 正忙，复制迟迟没有
#             开始，缓冲区却已经被改写。请改正：等读这个缓冲区的复制完成之后再改写，
#             但不要等另一个缓冲区。每个缓冲区用一个事件。
#         fails: "are wrong"
#       3:
#         title: {en: "Keep swapped blocks", zh: "保管换出的块"}
#         level: hard
#         minutes: 40
#         task:
#           en: >-
#             A GPU that runs out of memory moves blocks of a cache to the host,
#             and later back to other places. Write `room` (pinned memory for so
#             many blocks), `runs`, `swap_out` and `swap_in`.
#             `runs(blocks, slots)` joins pairs that follow each other on both
#             sides: blocks 4, 5, 9 and slots 0, 1, 2 are (4, 0, 2) and
#             (9, 2, 1). Make one asynchronous copy for each run.
#           zh: >-
#             显存不够用时，把缓存的一些块换出到主机，以后再换入到别的位置。写 `room`
#             （能放若干块的锁页内存）、`runs`、`swap_out` 和 `swap_in`。
#             `runs(blocks, slots)` 把两边都相邻的各对合并：块 4、5、9 和位置 0、1、2
#             合并成 (4, 0, 2) 和 (9, 2, 1)。每一段只做一次异步复制。
#         fails: "pinned"
# ---


# %% stub-1
def fewest_copies(pin, pageable, pinned):
    """From how many copies on the pinned buffer takes less time; or 0."""
    return 1  # yours


# %% stub-2
def send(batches, targets, buffers, stream):
    """Copy each batch to its target; buffer k % 2 is for batch k."""
    for k, (batch, target) in enumerate(zip(batches, targets)):
        buffer = buffers[k % 2]
        buffer[:] = batch  # yours: not before the last copy has read it
        cuda.memcpy_htod_async(target.gpudata, buffer, stream)


# %% stub-3
def room(slots):
    """Host memory for so many blocks, a row for each."""
    return np.empty((slots, WORDS), "uint32")  # yours: pinned


def runs(blocks, slots):
    """(first block, first slot, count) of pairs that follow each other."""
    return [(b, s, 1) for b, s in zip(blocks, slots)]  # yours: joined


def swap_out(cache, blocks, host, slots, stream):
    """Begin to copy blocks of the cache to these slots of the host."""
    # yours


def swap_in(cache, blocks, host, slots, stream):
    """Begin to copy slots of the host to these blocks of the cache."""
    # yours
