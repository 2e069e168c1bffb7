import type { LabelType, SensitiveValue } from './values.ts'

/** A sensitive value in a text, in UTF-16 units. */
export interface Label {
  type: LabelType
  kind: string
  /** Places that findings must cover. */
  start: number
  end: number
  /** How far a finding may reach without being too wide. */
  outerStart: number
  outerEnd: number
}

export interface Sample {
  text: string
  labels: Label[]
  /** Origin of the text: a mail, a row, a variant of spelling ... */
  setting: string
}

/** Encodes a value for its place, such as with the escapes of a string. It must keep the order of units. */
export type Writing = (text: string) => string

const asItIs: Writing = (text) => text

/** A text with the places of its sensitive values. */
export class LabelledText {
  #text = ''
  readonly #labels: Label[] = []

  add(text: string): this {
    this.#text += text
    return this
  }

  value({ type, kind, text, core }: SensitiveValue, writing: Writing = asItIs): this {
    const outerStart = this.#text.length
    const { start, end } = core ?? { start: 0, end: text.length }
    this.#text += writing(text)
    this.#labels.push({
      type,
      kind,
      start: outerStart + writing(text.slice(0, start)).length,
      end: outerStart + writing(text.slice(0, end)).length,
      outerStart,
      outerEnd: this.#text.length,
    })
    return this
  }

  /** Fills `{name}` and `{value}` of a sentence. */
  sentence(sentence: string, name: string, value: SensitiveValue, writing: Writing = asItIs): this {
    for (const part of sentence.split(/(\{name\}|\{value\})/)) {
      if (part === '{value}') this.value(value, writing)
      else this.add(part === '{name}' ? writing(name) : writing(part))
    }
    return this
  }

  sample(setting: string): Sample {
    return { text: this.#text, labels: this.#labels, setting }
  }
}
