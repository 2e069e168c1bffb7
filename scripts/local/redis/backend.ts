import type { RedisError, Reply } from './reply.ts'

/** Where commands go: the store in memory or a real Redis. All words are byte strings. */
export interface RedisBackend {
  /** @throws RedisError for what Redis answers with an error; any other error if Redis cannot be reached */
  run(words: string[]): Promise<Reply>
  /**
   * Runs commands as one transaction.
   *
   * @returns a reply or an error for each
   * @throws RedisError if the transaction as a whole was discarded
   */
  transaction(commands: string[][]): Promise<(Reply | RedisError)[]>
  close(): Promise<void>
}
