# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "How many chunks?", zh: "分成多少段？"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `stages` is a list: for each stage the time of all bytes and the time that each chunk costs
#             besides, in ms. Write `best(stages, most)`: the number of chunks, 1 to `most`, with which a
#             pipeline of these stages ends first (the smallest of equals), and the time that it takes. Suppose
#             that there are enough streams. There may be two stages, or five. The check simulates every number
#             of chunks for random stages.
#           zh: >-
#             `stages` 是一个列表，每个阶段给出两个时间：处理全部数据的时间，以及每一段数据额外要花的时间，单位都是
#             ms。写出 `best(stages, most)`：在 1 到 `most` 之间，返回流水线最早结束的段数，以及这时的总时间。假设流的数量
#             足够。阶段数不一定是三个，也可能是两个或五个。如果几种段数的时间相同，返回最小的。检查程序随机生成各阶段的时间，对每一种
#             段数做模拟，再与你的结果比较。
#         fails: "chunks"
#       2:
#         title: {en: "More data than memory", zh: "显存放不下的数据"}
#         level: medium
#         minutes: 35
#         task:
#           en: >-
#             The data are larger than what you may use of the GPU: there are a few `buffers`, each as large as
#             a chunk. Write `pipeline` with a stream for each stage, `streams` = (in, kernel, out), and with
#             events. A kernel waits for its copy in, a copy out for its kernel, and a copy in for the copy out
#             of the chunk that had its buffer before. The host does not wait. The check compares results, 20
#             times with random delays, and wants a time clearly below the sum of the stages.
#           zh: >-
#             数据比允许使用的显存大：只有几个缓冲区 `buffers`，每个与一段数据一样大。用事件写出 `pipeline`，每个阶段一个流，
#             `streams` =（传入、kernel、传出）。kernel 要等本段传入完成，传出要等本段的 kernel 完成，传入要等先前占用
#             同一个缓冲区的那段数据传出完成。主机不能等待。检查程序核对结果，其中 20 次让 kernel 随机推迟，并要求流水线的用时明显
#             少于各阶段用时的总和。
#         fails: "the sum"
#       3:
#         title: {en: "Keep swapped blocks in pinned memory", zh: "换出的块放在锁页内存里"}
#         level: medium
#         minutes: 40
#         task:
#           en: >-
#             A request that gives way has the blocks of its KV cache copied to the host, and back later. The
#             class below uses pageable memory, and each copy holds up the host. Let `host` be pinned memory,
#             made once, and the copies go to a stream of their own. A copy starts when the engine's stream
#             `compute` has done what it was given before. The engine calls `before_use(block)` before it
#             enqueues work on that block in `compute`: that work waits for the copies of this block, and for
#             no other. The check looks at the memory, at the time of a call while the GPU is busy, and at the
#             contents after random operations.
#           zh: >-
#             让出显存的请求，它的 KV 缓存块要复制到主机，以后再复制回来。下面的类用的是可分页内存，每次复制都会耽误主机。请改好它：
#             `host` 改成锁页内存，只分配一次；复制放到单独的流里。引擎的流是 `compute`，在此之前交给它的
#             工作做完之后，复制才能开始。引擎要在 `compute` 里使用某一块之前，会先调用 `before_use(block)`：随后的工作
#             必须等这一块的复制完成，但不能等别的块。检查程序查看内存的种类、GPU 忙碌时一次调用要花
#             多久，以及随机操作之后的内容。
#         fails: "pinned"
# ---

# %% stub-1
def best(stages, most):
    """(chunks, ms): when the pipeline ends first."""
    return 1, sum(ms + cost for ms, cost in stages)  # yours: more chunks


# %% stub-2
def pipeline(chunks, buffers, work, streams):
    """chunks: (source, result), arrays on the host. work(buffer, k, stream)
    launches the kernel of chunk k.
    """
    one, *_ = streams  # yours: a stream for each stage, and events
    for k, (source, result) in enumerate(chunks):
        buffer = buffers[k % len(buffers)]
        cuda.memcpy_htod_async(buffer.gpudata, source, one)
        work(buffer, k, one)
        cuda.memcpy_dtoh_async(result, buffer.gpudata, one)


# %% stub-3
class Swap:
    """Blocks of a KV cache, kept on the host while others need the room."""

    def __init__(self, cache, slots, compute):
        self.cache, self.compute = cache, compute
        self.host = np.zeros((slots, PIECES * WORDS), "uint32")  # yours

    def save(self, block, slot):
        """Copy a block of the cache to a slot on the host."""
        copy_block(self.cache, block, self.host[slot], self.compute)

    def fetch(self, slot, block):
        """Copy a slot back into a block."""
        copy_block(self.cache, block, self.host[slot], self.compute, back=True)

    def before_use(self, block):
        """`compute` is about to be given work on this block."""
