/** An operation as far as links need it. */
export interface LinkedOperation {
  name: string
  path: string
}

/** The parameters of a path, in order. */
export const parametersIn = (path: string): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

/**
 * The links (https://spec.openapis.org/oas/v3.1.1#link-object) from an operation that creates something to those that take its id:
 * each whose parameters are all known then.
 * @param created runtime expressions of the ids in the answer, by the parameter that takes them.
 */
export function linksFrom(
  { name, path }: LinkedOperation,
  created: Readonly<Record<string, string>>,
  all: readonly LinkedOperation[],
): Record<string, object> {
  const sent = Object.fromEntries(parametersIn(path).map((each) => [each, `$request.path.${each}`]))
  const known: Record<string, string> = { ...sent, ...created }
  const isLinked = (other: LinkedOperation): boolean => {
    const taken = parametersIn(other.path)
    return (
      other.name !== name &&
      taken.every((each) => known[each] !== undefined) &&
      taken.some((each) => created[each] !== undefined)
    )
  }
  const links = all.filter(isLinked).map((other) => {
    const parameters = parametersIn(other.path).map((each) => [each, known[each]])
    return [other.name, { operationId: other.name, parameters: Object.fromEntries(parameters) }]
  })
  return Object.fromEntries(links)
}
