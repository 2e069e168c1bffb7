/** A placeholder, `{{ name }}`. `\{{` stands for braces that are no placeholder. */
const PLACEHOLDER = /\\\{\{|\{\{([^{}]*)\}\}/g
const STEP_OUTPUT = /^steps\.([1-9]\d*)\.output$/

/** The reference of a placeholder. */
export type Reference = { kind: 'input'; name: string } | { kind: 'output'; step: number }

const referenceOf = (text: string): Reference => {
  const step = STEP_OUTPUT.exec(text)?.[1]
  return step === undefined ? { kind: 'input', name: text } : { kind: 'output', step: Number(step) }
}

/** The references of a template, in order. */
export function referencesIn(template: string): Reference[] {
  return [...template.matchAll(PLACEHOLDER)].flatMap(([, name]) =>
    name === undefined ? [] : [referenceOf(name.trim())],
  )
}

/**
 * Replaces the placeholders of a template. Values are inserted as they are: placeholders in them are text.
 * @param resolve gives the value of a reference; undefined leaves the placeholder as it is.
 * @param longest characters. @returns null for a text that would be longer. It is not made then: a value may be repeated often.
 */
export function renderTemplate(
  template: string,
  resolve: (reference: Reference) => string | undefined,
  longest: number,
): string | null {
  const pieces: string[] = []
  let end = 0
  let length = template.length
  for (const match of template.matchAll(PLACEHOLDER)) {
    const [whole, name] = match
    const value = name === undefined ? '{{' : (resolve(referenceOf(name.trim())) ?? whole)
    length += value.length - whole.length
    pieces.push(template.slice(end, match.index), value)
    end = match.index + whole.length
  }
  return length > longest ? null : pieces.join('') + template.slice(end)
}
