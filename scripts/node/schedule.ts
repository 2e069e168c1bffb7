import { CronExpressionParser } from 'cron-parser'

/**
 * Runs triggers by time: each cron expression at its times (UTC), and those of `atOnce` at the start too.
 * @param run runs one trigger. @param report gets one line for a trigger that failed.
 * @returns ends it: a trigger that still runs then is not reported, since what it needs ends too.
 */
export function startSchedule(
  crons: readonly string[],
  {
    run,
    report,
    atOnce,
  }: { run(cron: string): Promise<void>; report(line: string): void; atOnce: readonly string[] },
): () => void {
  const timers = new Map<string, NodeJS.Timeout>()
  let hasEnded = false
  const runOne = (cron: string) =>
    run(cron).catch((error: Error) => {
      if (!hasEnded) report(`the trigger ${cron} failed: ${error.message}`)
    })
  const wait = (cron: string): void => {
    const next = CronExpressionParser.parse(cron, { tz: 'UTC' }).next().getTime()
    const timer = setTimeout(() => {
      wait(cron)
      runOne(cron)
    }, next - Date.now())
    timers.set(cron, timer.unref())
  }
  for (const cron of crons) wait(cron)
  for (const cron of atOnce) runOne(cron)
  return () => {
    hasEnded = true
    for (const timer of timers.values()) clearTimeout(timer)
  }
}
