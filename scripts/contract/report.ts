import { counted } from '../../src/lib/counted.ts'
import { EXCEPTIONS } from './exceptions.ts'
import type { AccessReport } from './foreign-objects.ts'
import type { ContractResult } from './schemathesis.ts'

export interface ContractReport {
  access: AccessReport
  documents: Array<{ name: string; result: ContractResult }>
}

/** Whether nothing failed, and something ran. */
export const isRight = ({ access, documents }: ContractReport): boolean =>
  access.failures.length === 0 &&
  documents.every(
    ({ result }) =>
      result.failures.length === 0 && result.errors.length === 0 && result.tested === result.operations,
  )

/** The report as text: numbers, then what failed, then what was explained. */
export function reportText({ access, documents }: ContractReport): string {
  const lines = documents.flatMap(({ name, result }) => [
    `${name}: ${result.tested} of ${counted(result.operations, 'operation')}, ${counted(result.cases, 'case')}, ` +
      `${counted(sum(result.failures), 'failure')}, ${counted(sum(result.errors), 'error')}, ` +
      `${counted(total(result.explained), 'explained failure')}, ${Math.round(result.seconds)} s`,
    ...result.failures.flatMap(({ title, count, operations }) => [
      `  ${count} × ${title}`,
      ...operations.map((operation) => `      ${operation}`),
    ]),
    ...result.errors.map(({ title, count }) => `  ${count} × ${title}`),
    ...(result.failures.length > 0 ? [`  requests that repeat them: ${result.log}`] : []),
  ])
  const explained = EXCEPTIONS.map(({ reason }, row) => {
    const count = total(documents.map(({ result }) => result.explained[row] ?? 0))
    return `  ${String(count).padStart(5)} × ${reason}`
  })
  return [
    `objects of others: ${counted(access.operations, 'operation')} with ids, ${counted(access.requests, 'request')}, ` +
      `${counted(access.failures.length, 'failure')}`,
    ...access.failures.map((failure) => `  ${failure}`),
    ...lines,
    'explained failures:',
    ...explained,
  ].join('\n')
}

const total = (numbers: readonly number[]): number => numbers.reduce((left, right) => left + right, 0)
const sum = (groups: ReadonlyArray<{ count: number }>): number => total(groups.map(({ count }) => count))
