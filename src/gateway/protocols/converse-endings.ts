/** Stop reasons of an answer that cannot be used (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_MessageStopEvent.html). */
const MALFORMED: ReadonlySet<unknown> = new Set(['malformed_model_output', 'malformed_tool_use'])

/**
 * The message of a turn that ended as no answer: passed on as one, it would be empty or cut.
 * @returns null for any other stop reason.
 */
export const malformedTurn = (stopReason: unknown): string | null =>
  MALFORMED.has(stopReason) ? `The model's answer ended with ${stopReason}.` : null
