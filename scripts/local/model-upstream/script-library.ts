import { type BuiltInScript, builtInScripts } from './built-in-scripts.ts'
import { contentText, toList, toRecord, toText } from './json-value.ts'
import type { Dialect } from './reply.ts'
import { ScriptRequest } from './script-request.ts'
import type { Script, ScriptResponse, Step } from './script-steps.ts'
import { learnSignatures } from './signatures.ts'

const token = 'script:'
/** Above this size the body is not parsed to find its last user message. */
const maximumParsed = 1024 * 1024
const textWindow = 512

interface RegisteredScript {
  responses: ScriptResponse[]
  used: number
}

export interface SelectedScript {
  name: string
  builtIn: BuiltInScript | undefined
  /** The text after the token in the message: the place of options such as `tokens=5`. */
  text: string
}

/** Registered and built-in scripts, found by the token `script:NAME` in the last user message of a raw body. */
export class ScriptLibrary {
  readonly #registered = new Map<string, RegisteredScript>()

  /** Registers a script, replacing one of the same name and starting again with its first response. */
  register(name: string, script: Script): void {
    const responses = 'responses' in script ? script.responses : [script]
    learnSignatures(JSON.stringify(script))
    this.#registered.set(name, { responses, used: 0 })
  }

  /** Removes a registered script. @returns whether it was there */
  remove(name: string): boolean {
    return this.#registered.delete(name)
  }

  names(): { registered: string[]; builtIn: string[] } {
    return { registered: [...this.#registered.keys()], builtIn: [...builtInScripts.keys()] }
  }

  /**
   * The script that the last user message names, or else the system prompt: calls that the gateway makes by itself have
   * no message of the caller. A body without the token costs one byte search. A token that names no known script (such
   * as the end of "JavaScript: ") is passed over; of several the last counts.
   */
  select(body: Buffer): SelectedScript | undefined {
    const last = body.lastIndexOf(token)
    if (last < 0) return undefined
    const texts = body.length <= maximumParsed ? textsOf(body) : undefined
    const window = body.toString('utf8', last, last + textWindow).split('"', 1)
    for (const text of texts ?? window) {
      const selected = this.#named(text)
      if (selected !== undefined) return selected
    }
    return undefined
  }

  #named(text: string): SelectedScript | undefined {
    for (const match of [...text.matchAll(/script:([\w.-]*[\w-])/g)].reverse()) {
      const name = match[1] ?? ''
      const builtIn = this.#registered.has(name) ? undefined : builtInScripts.get(name)
      if (builtIn !== undefined || this.#registered.has(name)) {
        return { name, builtIn, text: text.slice(match.index + match[0].length) }
      }
    }
    return undefined
  }

  /** The steps that answer this request; each call takes a registered script's next response. */
  steps(selected: SelectedScript, body: Buffer, dialect: Dialect, credential: string): Iterable<Step> {
    if (selected.builtIn !== undefined) {
      return selected.builtIn(new ScriptRequest(body, selected.text, dialect, credential))
    }
    const script = this.#registered.get(selected.name)
    if (script === undefined) return []
    const response = script.responses[Math.min(script.used, script.responses.length - 1)]
    script.used += 1
    if (response === undefined || 'steps' in response) return response?.steps ?? []
    return new ScriptRequest(body, '', dialect, credential).stream ? response.streamed : response.whole
  }
}

/**
 * The text of the last user message that has text, and the system prompt; undefined if the body is not JSON. A message
 * of tool results alone has no text, so that a script continues through a tool loop.
 */
function textsOf(body: Buffer): string[] | undefined {
  try {
    const { messages, prompt, input, system } = toRecord(JSON.parse(body.toString('utf8')))
    if (typeof input === 'string') return [input]
    if (prompt !== undefined) return [toText(Array.isArray(prompt) ? prompt.at(-1) : prompt)]
    const records = toList(messages ?? input).map(toRecord)
    const textsFrom = (...roles: string[]) =>
      records.filter(({ role }) => roles.includes(String(role))).map(({ content }) => contentText(content))
    const last = textsFrom('user').findLast((text) => text !== '') ?? ''
    return [last, contentText(system), ...textsFrom('system', 'developer')]
  } catch {
    return undefined
  }
}
