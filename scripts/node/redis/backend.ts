import type { Reply } from './reply.ts'

/** Runs commands: the store in memory or a real Redis. All words are byte strings. */
export interface RedisBackend {
  /** @throws RedisError for what Redis answers with an error; any other error if Redis cannot be reached */
  run(words: string[]): Promise<Reply>
  close(): Promise<void>
}
