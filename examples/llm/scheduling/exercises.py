# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "What users saw", zh: "用户感受到的快慢"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `seen(arrivals, times)`: four numbers, TTFT at the 50th and at the 99th percentile, then TPOT
#             at the 50th and at the 99th. arrivals: a number per request. times: a list per request, when each
#             of its tokens came. A request of one token has no time per token; leave it out there. `np.percentile`
#             computes percentiles.
#           zh: >-
#             写出 `seen(arrivals, times)`，返回四个数：首词元时间的第 50 和第 99 百分位数，每词元时间的第 50 和第
#             99 百分位数。arrivals：各个请求的到达时刻。times：每个请求一个列表，列出各个词元出现的时刻。
#             只有一个词元的请求没有每词元时间，不参加统计。百分位数可以用 `np.percentile` 计算。
#         fails: "TTFT"
#       2:
#         title: {en: "Mend an impatient scheduler", zh: "修好一个没有耐心的调度器"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             `Impatient` takes two methods of our scheduler and changes each of them in one place. With plenty of
#             blocks it works. With few blocks somebody is admitted without room, or requests never end. Find the
#             two mistakes and mend them.
#           zh: >-
#             `Impatient` 把本书调度器的两个方法各改了一处。块充裕时一切正常；块紧张时，有的请求放不下也被
#             接纳，有的请求永远结束不了。请找出这两处错误并改正。
#         fails: "(without room|is preempted)"
#       3:
#         title: {en: "A policy in which nobody waits forever", zh: "不让任何请求永远等待的策略"}
#         level: medium
#         minutes: 25
#         given: ["1 ms"]
#         task:
#           en: >-
#             Shortest first makes long requests wait as long as short ones come. Write `patient(request)`, a key
#             like those of `scheduler.POLICIES`: smaller goes first, and it must never change while the request
#             lives. A request of n tokens, prompt and answer, shall count as if it had arrived n * 1 ms later than
#             it did. So a short one overtakes a long one only if it comes soon enough. Equal ones go by number.
#           zh: >-
#             最短先来时，只要短请求不断，长请求就一直等。写出 `patient(request)`，返回排序用的键，用法与
#             `scheduler.POLICIES` 里的键相同：键小的先算，请求结束之前不能改变。提示与回答共 n 个词元的请求，当作
#             比实际晚到 n * 1 ms。这样，短请求要来得够早才能超过长请求。键相同时按编号排。
#         fails: "order"
# ---
# %% stub-1
def seen(arrivals, times):
    return 0.0, 0.0, 0.0, 0.0  # yours


# %% stub-2
class Impatient(Scheduler):
    """Two methods of Scheduler, each with a mistake."""

    def admit(self, step, budget):
        while self.waiting and budget and len(self.running) < self.max_running:
            request = self.waiting[0]
            spare = self.spare if self.running else 0
            if not self.blocks.fits(request.prompt, spare):
                break
            self._start(step, request)
            start, known = request.computed, len(request.tokens)
            stop = min(known, start + budget)
            step.copies += self.blocks.reserve(request.id, start, stop)
            budget -= stop - start
            step.work.append(Work(request, start, stop, (), stop == known))

    def _preempt(self, step):
        request = self.running.pop(0)
        self.blocks.release(request.id)
        request.state, request.computed = State.WAITING, 0
        request.preemptions += 1
        insort(self.waiting, request, key=self.order)
        step.preempted.append(request)


# %% stub-3
def patient(request):
    return (request.arrival, request.id)  # yours
