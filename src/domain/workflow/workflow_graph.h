/* A workflow as it is drawn: nodes, and edges between them, in one form whatever it was drawn with.
 *
 *     {"nodes": [{"id", "name", "type", "parameters", ...}], "connections": {FROM: {"main": [[{"node",
 *      "type"}]]}}}                                                                      the worker's
 *     {"nodes": [{"id", "data": {"nodeType", "label", ...}}], "edges": [{"source", "target",
 *      "sourceHandle"}]}                                                                 its editor's
 *   become
 *     {"nodes": [{"id", "name", "type", "parameters", ...}], "edges": [{"from", "to", "type"}]}
 *
 * Pure. */
#pragma once

#include <jansson.h>

#include "base/error.h"

#define WORKFLOW_NODES_MAX 200
#define WORKFLOW_EDGES_MAX 1000

/* Owned. What is no workflow at all becomes one without nodes, which workflow_graph_check tells. */
json_t *workflow_graph_normal(json_t *workflow);

/* Append a sentence to `errors` for everything that is wrong with a normal one. */
void workflow_graph_check(json_t *graph, json_t *errors);
