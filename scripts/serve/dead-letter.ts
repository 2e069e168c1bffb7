import type { DeadMessage } from '../node/qstash/queued-message.ts'
import type { LogFields } from './log.ts'

/** What the log has of a dead letter: no body, header or query, which may have what a user wrote or a credential. */
export const deadLetterFields = (letter: DeadMessage): LogFields => ({
  message_id: letter.messageId,
  path: new URL(letter.url).pathname,
  deliveries: letter.retried + 1,
  /** 0 for no answer. */
  status: letter.responseStatus,
  published_at: new Date(letter.createdAt).toISOString(),
})
