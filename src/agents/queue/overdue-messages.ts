import { settleAll } from '../../lib/settle-all.ts'

/** A message that is published in time is none of the sweep's. */
const OVERDUE_MS = 10_000
/** Time that QStash has for a message and its repetitions. */
const UNANSWERED_MS = 120_000
const MOST_MESSAGES = 500
const PUBLISHED_TOGETHER = 10

/** Which stored messages the sweep publishes again. Times are in milliseconds since the epoch. */
export interface OverdueLimits {
  now: number
  /** Selects messages that were due before this time. */
  overdueSince: number
  /** Selects messages that are not published, or were published before this time and had no effect. */
  publishedBefore: number
  most: number
}

export const overdueLimits = (now: number): OverdueLimits => ({
  now,
  overdueSince: now - OVERDUE_MS,
  publishedBefore: now - UNANSWERED_MS,
  most: MOST_MESSAGES,
})

/** Publishes messages again, some at a time. @throws what `publish` throws, after all others. */
export async function publishAgain<Message>(
  messages: readonly Message[],
  publish: (message: Message) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < messages.length; at += PUBLISHED_TOGETHER) {
    await settleAll(messages.slice(at, at + PUBLISHED_TOGETHER).map(publish))
  }
}
