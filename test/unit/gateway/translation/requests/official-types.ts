import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** Reads the vendors' own type declarations, so that no member that they have goes unconsidered. */
export class OfficialTypes {
  readonly #text: string

  /** @param packageName as installed. @param file below its root. */
  constructor(packageName: string, file: string) {
    const root = dirname(createRequire(import.meta.url).resolve(packageName))
    this.#text = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
  }

  /** Names of an interface's own members. */
  members(name: string): string[] {
    const lines = this.#body(name).split('\n')
    const names: string[] = []
    let depth = 0
    for (const line of lines) {
      const member = depth === 0 ? /^\s*(\w+)\??:/.exec(line)?.[1] : undefined
      if (member) names.push(member)
      depth += line.split('{').length - line.split('}').length
    }
    if (names.length === 0) throw new Error(`${name} has no members`)
    return names
  }

  /** The `type` of each interface of a union. */
  kinds(union: string): string[] {
    const found = new RegExp(`export type ${union} = ([^;]*);`).exec(this.#text)?.[1]
    if (!found) throw new Error(`no union ${union}`)
    return found.split('|').map((name) => this.kind(name.trim()))
  }

  kind(name: string): string {
    const kind = /^\s*type\??: '(\w+)'/m.exec(this.#body(name.split('.').at(-1) ?? name))?.[1]
    if (!kind) throw new Error(`${name} has no type`)
    return kind
  }

  #body(name: string): string {
    const declared = new RegExp(`interface ${name} (?:extends [^{]*)?\\{`).exec(this.#text)
    if (!declared) throw new Error(`no interface ${name}`)
    const start = declared.index + declared[0].length
    let depth = 1
    let at = start
    for (; depth > 0; at++) depth += this.#text[at] === '{' ? 1 : this.#text[at] === '}' ? -1 : 0
    return this.#text.slice(start, at - 1)
  }
}
