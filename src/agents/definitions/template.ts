/** A placeholder, `{{ name }}`. `\{{` stands for braces that are no placeholder. */
const PLACEHOLDER = /\\\{\{|\{\{([^{}]*)\}\}/g
const STEP_OUTPUT = /^steps\.([1-9]\d*)\.output$/

/** What a placeholder stands for. */
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
 */
export function renderTemplate(
  template: string,
  resolve: (reference: Reference) => string | undefined,
): string {
  return template.replace(PLACEHOLDER, (whole, name: string | undefined) =>
    name === undefined ? '{{' : (resolve(referenceOf(name.trim())) ?? whole),
  )
}
