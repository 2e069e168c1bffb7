import { createHash } from 'node:crypto'
import { RedisError } from './reply.ts'

/**
 * Finds scripts by the hash that clients use.
 *
 * `@upstash/ratelimit` starts its scripts with `#!lua flags=allow-key-locking`, which Upstash supports and stock Redis
 * refuses. So the first line is dropped before a script runs. Because that changes the hash, EVALSHA is looked up here
 * and always runs as EVAL.
 */
export class ScriptCache {
  readonly #sources = new Map<string, string>()

  /**
   * Translates EVAL and EVALSHA; other commands stay as they are.
   *
   * @param words the command and its arguments, as byte strings
   * @throws RedisError (NOSCRIPT) for a hash that was never seen
   */
  translate(words: string[]): string[] {
    const [name = '', script, ...rest] = words
    const command = name.toUpperCase()
    if (script === undefined || (command !== 'EVAL' && command !== 'EVALSHA')) return words
    const source = command === 'EVAL' ? this.#learn(script) : this.#sources.get(script.toLowerCase())
    if (source === undefined) throw new RedisError('NOSCRIPT No matching script. Please use EVAL.')
    return ['EVAL', source, ...rest]
  }

  #learn(original: string): string {
    const hash = createHash('sha1').update(original, 'latin1').digest('hex')
    // The line break stays, so that line numbers in errors are still right.
    const source = original.replace(/^#!lua[^\n]*/, '')
    this.#sources.set(hash, source)
    return source
  }
}
