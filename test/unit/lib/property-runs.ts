/** Random inputs of a property test. `npm run test:faults` tries more. */
export const PROPERTY_RUNS = Number(process.env.PROPERTY_RUNS ?? 60)
