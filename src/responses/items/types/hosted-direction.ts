import type { Direction } from '../../../dlp/types.ts'

/** Members of calls with their results. */
const RESULTS = new Set(['output', 'outputs', 'result', 'results', 'error'])

/** Directions of the texts of a call that has its result in the same item. */
export const hostedDirection = (member: string): Direction =>
  RESULTS.has(member) ? 'tool_result' : 'tool_arguments'
