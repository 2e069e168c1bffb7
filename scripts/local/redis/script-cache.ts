import { createHash } from 'node:crypto'
import { RedisError, type Reply } from './reply.ts'

/** What is to be done with a command: answer it at once, or run other words in its place. */
export type TranslatedCommand = { readonly reply: Reply } | { readonly words: string[] }

/**
 * Knows scripts by the hash that clients use.
 *
 * `@upstash/ratelimit` starts its scripts with `#!lua flags=allow-key-locking`, which Upstash understands and stock
 * Redis refuses. So the first line is dropped before a script runs, and since that changes the hash, EVALSHA is
 * looked up here and always runs as EVAL.
 */
export class ScriptCache {
  readonly #sources = new Map<string, string>()

  /**
   * Translates EVAL, EVALSHA and SCRIPT; other commands stay as they are.
   *
   * @param words the command and its arguments, as byte strings
   * @throws RedisError (NOSCRIPT) for a hash that was never seen
   */
  translate(words: string[]): TranslatedCommand {
    const [name = '', first, ...rest] = words
    const command = name.toUpperCase()
    if (command === 'SCRIPT') return { reply: this.#script(first?.toUpperCase() ?? '', rest) }
    if (first === undefined || !/^EVAL(SHA)?(_RO)?$/.test(command)) return { words }
    if (!command.startsWith('EVALSHA')) return { words: [command, this.#learn(first).source, ...rest] }
    const source = this.#sources.get(first.toLowerCase())
    if (source === undefined) throw new RedisError('NOSCRIPT No matching script. Please use EVAL.')
    return { words: [command.replace('SHA', ''), source, ...rest] }
  }

  #script(action: string, words: string[]): Reply {
    if (action === 'LOAD' && words.length === 1) return this.#learn(words[0] ?? '').hash
    if (action === 'EXISTS') return words.map((hash) => Number(this.#sources.has(hash.toLowerCase())))
    if (action === 'FLUSH') {
      this.#sources.clear()
      return 'OK'
    }
    throw new RedisError(`ERR unknown subcommand '${action}'. Try SCRIPT HELP.`)
  }

  #learn(original: string): { hash: string; source: string } {
    const hash = createHash('sha1').update(original, 'latin1').digest('hex')
    // The line break stays, so that line numbers in errors are still right.
    const source = original.replace(/^#!lua[^\n]*/, '')
    this.#sources.set(hash, source)
    return { hash, source }
  }
}
